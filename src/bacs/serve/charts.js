// Curves over time as SVG, drawn anew with every event: a few hundred points need no library.
const NS = "http://www.w3.org/2000/svg";
const LEFT = 44, RIGHT = 10, TOP = 16, BOTTOM = 22, HEIGHT = 170;

function element(name, attributes, parent, text) {
  const made = document.createElementNS(NS, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  parent.append(made);
  return made;
}

// Round numbers that cover the values: three or four ticks.
function ticks(low, high) {
  const span = high - low || 1;
  const power = 10 ** Math.floor(Math.log10(span / 3));
  const step = [1, 2, 5, 10].map(factor => factor * power).find(size => span / size <= 4);
  const found = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * span; k++) found.push(k * step);
  return found;
}

function range(rows, spec) {
  const values = rows.flatMap(row => spec.curves.flatMap(curve => [row[curve.name], ...(curve.band ?? []).map(n => row[n])]));
  const known = values.filter(value => value !== null && value !== undefined);
  if (!known.length) return null;
  let low = Math.min(...known), high = Math.max(...known);
  if (spec.zero) low = Math.min(low, 0);
  const margin = (high - low) * 0.08 || Math.abs(high) * 0.1 || 1;
  low = spec.zero ? low : low - margin;
  high += margin;
  return [spec.least === undefined ? low : Math.max(low, spec.least), spec.most === undefined ? high : Math.min(high, spec.most)];
}

export const clock = time => new Date(time * 1000).toLocaleTimeString("en-GB");

export function makeChart(spec, holder) {
  const figure = document.createElement("figure");
  const caption = document.createElement("figcaption");
  const keys = spec.curves.map(curve => {
    const key = document.createElement("span");
    key.className = curve.dotted ? "key dotted" : "key";
    key.style.setProperty("--own", `var(--${curve.colour})`);
    caption.append(key);
    return key;
  });
  const svg = document.createElementNS(NS, "svg");
  svg.setAttribute("role", "img");
  figure.append(caption, svg);
  holder.append(figure);
  let last = null, pointed = null;

  function tell(row) {
    spec.curves.forEach((curve, i) => { keys[i].textContent = `${curve.label} ${row ? spec.text(row[curve.name], curve) : ""}`; });
  }

  function draw(rows, decisions) {
    last = [rows, decisions];
    const width = Math.max(220, svg.clientWidth);
    svg.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
    svg.replaceChildren();
    const row = rows.at(-1);
    tell(row);
    const told = row ? spec.curves.map(curve => `${curve.label} ${spec.text(row[curve.name], curve)}`).join(", ") : "nothing yet";
    svg.setAttribute("aria-label", `${spec.title} over time. Last: ${told}.`);
    const span = range(rows, spec);
    if (span === null) {
      element("text", {x: width / 2, y: HEIGHT / 2, "text-anchor": "middle"}, svg, rows.length ? spec.nothing ?? "not known" : "nothing yet");
      return;
    }
    const first = rows[0].time, end = Math.max(rows.at(-1).time, first + 1);
    const x = time => LEFT + (time - first) / (end - first) * (width - LEFT - RIGHT);
    const y = value => TOP + (span[1] - value) / (span[1] - span[0]) * (HEIGHT - TOP - BOTTOM);
    for (const tick of ticks(...span)) {
      element("line", {class: "grid", x1: LEFT, x2: width - RIGHT, y1: y(tick), y2: y(tick)}, svg);
      element("text", {x: LEFT - 6, y: y(tick) + 4, "text-anchor": "end"}, svg, spec.tick(tick));
    }
    const labels = end - first < 2 ? [[first, "start"]] : [[first, "start"], [(first + end) / 2, "middle"], [end, "end"]];
    for (const [time, anchor] of labels) element("text", {x: x(time), y: HEIGHT - 5, "text-anchor": anchor}, svg, clock(time));
    // Decisions that fall together on the axis share one line and one label.
    const groups = [];
    for (const decision of decisions) {
      if (decision.time === null || decision.time < first || decision.time > end + 2) continue;
      const at = x(Math.min(decision.time, end)), before = groups.at(-1);
      if (before && at - before.at < 18) before.last = decision.number;
      else groups.push({at, first: decision.number, last: decision.number});
    }
    for (const group of groups) {
      element("line", {class: "decision", x1: group.at, x2: group.at, y1: TOP - 4, y2: HEIGHT - BOTTOM}, svg);
      const label = group.first === group.last ? group.first : `${group.first}–${group.last}`;
      element("text", {class: "decision-number", x: group.at, y: TOP - 6, "text-anchor": "middle"}, svg, label);
    }
    for (const curve of spec.curves) {
      const style = `--own: var(--${curve.colour})`;
      const known = rows.filter(point => point[curve.name] !== null && point[curve.name] !== undefined);
      if (!known.length) continue;
      if (curve.band) {
        const [low, high] = curve.band;
        const edge = [...known.map(p => `${x(p.time)},${y(p[high])}`), ...known.toReversed().map(p => `${x(p.time)},${y(p[low])}`)];
        const band = element("polygon", {class: "band", points: edge.join(" ")}, svg);
        band.style.cssText = style;
      }
      // What is changed by decisions stays as it is between them.
      const corner = (point, before) => curve.stepped && before ? [`${x(point.time)},${y(before[curve.name])}`] : [];
      const points = known.flatMap((point, i) => [...corner(point, known[i - 1]), `${x(point.time)},${y(point[curve.name])}`]);
      const line = element("polyline", {class: curve.dotted ? "curve dotted" : "curve", points: points.join(" ")}, svg);
      line.style.cssText = style;
      const dot = element("circle", {class: "dot", r: 3, cx: x(known.at(-1).time), cy: y(known.at(-1)[curve.name])}, svg);
      dot.style.cssText = style;
    }
    if (pointed !== null) {
      const time = first + (pointed - LEFT) / (width - LEFT - RIGHT) * (end - first);
      const near = rows.reduce((best, point) => Math.abs(point.time - time) < Math.abs(best.time - time) ? point : best);
      element("line", {class: "cursor", x1: x(near.time), x2: x(near.time), y1: TOP, y2: HEIGHT - BOTTOM}, svg);
      tell(near);
    }
  }

  const redraw = () => last && draw(...last);
  svg.addEventListener("pointermove", event => { pointed = event.clientX - svg.getBoundingClientRect().left; redraw(); });
  svg.addEventListener("pointerleave", () => { pointed = null; redraw(); });
  new ResizeObserver(redraw).observe(figure);
  return draw;
}
