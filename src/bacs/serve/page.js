// What the service tells, on the page; and its buttons. Text from the service is only ever set as text.
import {clock, makeChart} from "./charts.js";

const at = id => document.getElementById(id);
const share = value => value === null || value === undefined ? "–" : `${(100 * value).toFixed(1)} %`;
const number = (value, digits = 3) => value === null || value === undefined ? "–" : Number(value.toPrecision(digits)).toString();
const milliseconds = value => value === null || value === undefined ? "–" : value < 1 ? `${(1000 * value).toFixed(0)} ms` : `${value.toFixed(1)} s`;
const KEPT = 1200;

const CHARTS = [
  {title: "Estimated accuracy, agreement and confidence", most: 1, least: 0, text: share, tick: value => `${Math.round(100 * value)} %`,
    curves: [{name: "estimate", label: "estimated accuracy", colour: "first", band: ["low", "high"]},
      {name: "agreement", label: "agreement", colour: "third"}, {name: "confidence", label: "confidence", colour: "second", dotted: true}]},
  {title: "Effective classes", zero: true, text: value => number(value), tick: value => number(value),
    curves: [{name: "effective_classes", label: "effective classes", colour: "first"}]},
  {title: "Distance from home", zero: true, text: value => number(value), tick: value => number(value), nothing: "flat posteriors have no deviations to measure by",
    curves: [{name: "moved", label: "distance from home, in posterior deviations", colour: "first"}]},
  {title: "Share of batch statistics", zero: true, most: 1.05, text: value => number(value), tick: value => number(value),
    curves: [{name: "batch_weight", label: "r, the share of batch statistics", colour: "first", stepped: true}]},
  {title: "Learning rate", zero: true, text: value => number(value), tick: value => number(value),
    curves: [{name: "learning_rate", label: "learning rate", colour: "second", stepped: true}]},
  {title: "Latency", zero: true, text: milliseconds, tick: milliseconds,
    curves: [{name: "p50", label: "latency: median", colour: "first"}, {name: "p99", label: "99 %", colour: "second", dotted: true}]},
  {title: "Throughput", zero: true, text: value => number(value), tick: value => number(value),
    curves: [{name: "images_per_second", label: "images per second", colour: "third"}]},
  {title: "Queue", zero: true, text: value => number(value), tick: value => number(value),
    curves: [{name: "queue", label: "images in the queue", colour: "first"}]},
];
const draws = CHARTS.map(spec => makeChart(spec, at("charts")));
let rows = [], now = {}, decisions = [];

function tile(list, title, value, small = "") {
  const name = document.createElement("dt"), told = document.createElement("dd"), below = document.createElement("small");
  name.textContent = title;
  told.textContent = value;
  below.textContent = small;
  told.append(below);
  const both = document.createElement("div");
  both.append(name, told);
  list.push(both);
}

function showTiles(latency) {
  const row = rows.at(-1) ?? {}, list = [];
  const alone = now.members === 1 ? "one network has nobody to agree with" : "";
  tile(list, "Estimated accuracy", share(row.estimate), row.low === null || row.low === undefined ? alone : `${share(row.low)} to ${share(row.high)}`);
  tile(list, "Agreement", share(row.agreement), `${now.members ?? "–"} members`);
  tile(list, "Confidence", share(row.confidence), `temperature ${number(now.temperature ?? null)}`);
  tile(list, "Effective classes", number(row.effective_classes), now.class_names ? `of ${now.class_names.length}` : "");
  tile(list, "Distance from home", number(row.moved), "posterior deviations");
  tile(list, "Batch statistics, r", number(row.batch_weight), `rate ${number(row.learning_rate)}`);
  tile(list, "Queue", `${now.queue ?? "–"}`, `of ${now.limit ?? "–"} images`);
  tile(list, "Latency", milliseconds(latency.p50), `99 %: ${milliseconds(latency.p99)}`);
  tile(list, "Images", (now.images ?? 0).toLocaleString("en"), `${number(row.images_per_second)} per second`);
  tile(list, "Step", (now.step ?? 0).toLocaleString("en"), now.keeps ? (now.saved ? "kept on disk" : "could not be saved") : "not kept: no --state");
  at("tiles").replaceChildren(...list);
}

function described(what) {
  return Object.entries(what).map(([name, change]) => {
    const words = name.replaceAll("_", " ");
    const short = value => typeof value === "number" ? number(value) : `${value ?? "none"}`;
    return Array.isArray(change) && change.length === 2 && name !== "reset" ? `${words}: ${short(change[0])} → ${short(change[1])}` : `${words}: ${[change].flat().join(", ")}`;
  }).join("; ");
}

function showDecisions() {
  at("no-decisions").hidden = decisions.length > 0;
  at("decisions").replaceChildren(...decisions.toReversed().map(decision => {
    const item = document.createElement("li"), mark = document.createElement("b"), when = document.createElement("small");
    mark.textContent = decision.number;
    when.textContent = `step ${decision.step}, ${decision.time === null ? "before the restart" : clock(decision.time)}`;
    item.append(mark, decision.reason && decision.reason !== "asked for" ? `${decision.reason} (${described(decision.what)})` : described(decision.what), when);
    return item;
  }));
}

function showClasses() {
  const counts = rows.at(-1)?.classes ?? [], most = Math.max(1, ...counts);
  const named = counts.map((count, i) => [now.class_names?.[i] ?? `${i}`, count]);
  const shown = named.length > 20 ? named.toSorted((a, b) => b[1] - a[1]).slice(0, 20) : named;
  at("classes").tBodies[0].replaceChildren(...shown.map(([name, count]) => {
    const line = document.createElement("tr"), head = document.createElement("th"), cell = document.createElement("td");
    const both = document.createElement("span"), bar = document.createElement("i"), text = document.createElement("span");
    head.scope = "row";
    head.textContent = name;
    bar.style.setProperty("--share", count / most);
    text.className = "count";
    text.textContent = count;
    both.append(bar, text);
    cell.append(both);
    line.append(head, cell);
    return line;
  }));
}

function showPictures(pictures) {
  at("pictures").replaceChildren(...pictures.toReversed().map(picture => {
    const item = document.createElement("li"), image = document.createElement("img"), text = document.createElement("span");
    image.src = `/pictures/${picture.number}`;
    image.alt = "";
    text.textContent = `${picture.label} ${share(picture.confidence)}${picture.abstain ? ", unsure" : ""}`;
    if (picture.abstain) text.className = "unsure";
    item.append(image, text);
    return item;
  }));
  at("pictures-switch").textContent = now.shows_pictures ? "Hide pictures" : "Show pictures";
  at("no-pictures").textContent = pictures.length ? "" : now.shows_pictures ? "None yet." : "Not shown, and not held.";
}

function showState(text, kind) {
  if (at("state").textContent !== text) at("state").textContent = text;
  at("state").className = `pill ${kind}`;
}

function show(told) {
  if (told.now.life !== now.life) rows = [];
  now = told.now;
  rows = [...rows, ...told.rows].slice(-KEPT);
  decisions = told.decisions.map((decision, i) => ({...decision, number: i + 1}));
  at("name").textContent = now.name;
  document.title = `${now.name}: bacs serve`;
  at("about").textContent = `${now.members} ${now.members === 1 ? "member" : "members"}, method ${now.method}${now.by !== now.method ? `, at present ${now.by}` : ""}`;
  showState(now.frozen ? "frozen" : "adapting", now.frozen ? "frozen" : "adapting");
  at("freeze").textContent = now.frozen ? "Resume" : "Freeze";
  for (const id of ["freeze", "reset", "save", "pictures-switch"]) at(id).disabled = !now.admitted;
  at("save").hidden = !now.keeps;
  at("unlock").hidden = now.admitted;
  showTiles(told.latency);
  showDecisions();
  showClasses();
  showPictures(told.pictures);
  draws.forEach(draw => draw(rows, decisions));
}

async function act(action, done) {
  try {
    const answer = await fetch(`/control/${action}`, {method: "POST"});
    const told = await answer.json();
    const well = answer.ok && (action !== "save" || told.saved);
    at("said").textContent = well ? done : `That did not work${told.error ? `: ${told.error}` : "."}`;
  } catch {
    at("said").textContent = "The service did not answer.";
  }
}

at("freeze").addEventListener("click", () => now.frozen ? act("resume", "It adapts again.") : act("freeze", "Frozen: it predicts, and nothing adapts."));
at("save").addEventListener("click", () => act("save", "Saved."));
at("pictures-switch").addEventListener("click", () => act(`pictures/${!now.shows_pictures}`, now.shows_pictures ? "Pictures are not held any more." : "The next pictures are shown."));
at("reset").addEventListener("click", () => { at("sure").returnValue = ""; at("sure").showModal(); });
at("sure").addEventListener("close", () => { if (at("sure").returnValue === "yes") act("reset", "Back to the ensemble as it came."); });
at("unlock").addEventListener("click", () => at("login").showModal());
at("login-cancel").addEventListener("click", () => at("login").close());

const events = new EventSource("/events");
events.addEventListener("message", event => show(JSON.parse(event.data)));
events.addEventListener("error", () => showState("not connected", "lost"));
