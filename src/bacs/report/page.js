"use strict";
(() => {
  const numberOf = (cell) => {
    const value = cell.dataset.value;
    return value === undefined ? null : value === "inf" ? Infinity : Number(value);
  };

  // Numbers before gaps; texts by their letters.
  const compare = (a, b) => {
    const [x, y] = [numberOf(a), numberOf(b)];
    if (x !== null && y !== null) return x < y ? -1 : x > y ? 1 : 0;
    if (x !== null || y !== null) return x === null ? 1 : -1;
    return a.textContent.localeCompare(b.textContent, "en", { numeric: true });
  };

  // The place of a heading among the cells of a line: one heading spans both rows of a header of two.
  const placeOf = (heading) => {
    const rows = [...heading.closest("thead").rows];
    return heading.cellIndex + (rows.indexOf(heading.parentElement) > 0 ? 1 : 0);
  };

  const sort = (heading) => {
    const table = heading.closest("table");
    const next = { none: "ascending", ascending: "descending", descending: "none" };
    const order = next[heading.getAttribute("aria-sort") || "none"];
    for (const other of table.querySelectorAll("thead th[aria-sort]")) other.removeAttribute("aria-sort");
    if (order !== "none") heading.setAttribute("aria-sort", order);
    const place = placeOf(heading);
    const sign = order === "descending" ? -1 : 1;
    for (const body of table.tBodies) {
      const lines = [...body.rows];
      lines.sort((a, b) =>
        order === "none" ? a.dataset.order - b.dataset.order : sign * compare(a.cells[place], b.cells[place]),
      );
      body.append(...lines);
    }
  };

  for (const body of document.querySelectorAll("tbody")) {
    [...body.rows].forEach((line, index) => (line.dataset.order = index));
  }
  for (const button of document.querySelectorAll("thead button")) {
    button.addEventListener("click", () => sort(button.closest("th")));
  }

  // What lies beyond the edge of its box is announced, in words and by fading out towards it.
  const scrolling = [...document.querySelectorAll(".scroll")];
  const announce = (box) => {
    const rest = box.scrollWidth - box.clientWidth;
    box.previousElementSibling.hidden = rest <= 1;
    box.classList.toggle("cut", box.scrollLeft < rest - 1);
  };
  const sizes = new ResizeObserver((changes) => changes.forEach((change) => announce(change.target)));
  for (const box of scrolling) {
    sizes.observe(box);
    box.addEventListener("scroll", () => announce(box), { passive: true });
  }

  const form = document.querySelector(".filter");
  const boxes = [...form.querySelectorAll("input")];
  const filter = () => {
    const chosen = new Set(boxes.filter((box) => box.checked).map((box) => box.value));
    for (const element of document.querySelectorAll("main [data-method]")) {
      element.toggleAttribute("hidden", !chosen.has(element.dataset.method)); // parts of figures have no .hidden
    }
    scrolling.forEach(announce);
    form.querySelector("output").textContent =
      chosen.size === boxes.length ? "" : `${chosen.size} of ${boxes.length} shown`;
  };
  for (const box of boxes) box.addEventListener("change", filter);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.hidden = boxes.length < 2;
  filter(); // a reloaded page may come with boxes already cleared
})();
