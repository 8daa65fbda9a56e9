"use strict";
// A table whose first row has the names of its columns: it sorts by them, and fits a phone.
const COLUMN = 6 * parseFloat(getComputedStyle(document.documentElement).fontSize);  // of a column, at least
const amount = (cell) => { const text = cell.textContent.trim().replaceAll(",", "").replace("%", ""); return text ? Number(text) : NaN; };

/* Where a row has no room, or would cut a word, it becomes a list of names and values, still a row to who is read to. */
function fitted(table) {
  const names = [...table.rows[0].cells].map((one) => one.textContent), box = document.createElement("div");
  table.rows[0].className = "names";
  table.setAttribute("role", "table");
  for (const line of table.rows) {
    line.setAttribute("role", "row");
    [...line.cells].forEach((cell, at) => {
      cell.setAttribute("role", cell.tagName === "TH" ? "columnheader" : "cell");
      if (cell.tagName === "TD") cell.dataset.name = names[at];
    });
  }
  new ResizeObserver(([{ contentRect }]) => {
    table.classList.remove("stacked");
    table.classList.toggle("stacked", contentRect.width < COLUMN * names.length || table.offsetWidth > Math.ceil(contentRect.width));
  }).observe(box);
  table.replaceWith(box); box.className = "box"; box.append(table);
  return box;
}

/* Numbers by their size, the largest first; what is none after them, by its letters. */
function sortable(table) {
  const [top, ...lines] = table.rows;
  [...top.cells].forEach((title, at) => {
    const press = document.createElement("button");
    press.type = "button"; press.append(...title.childNodes); title.append(press); title.scope = "col";
    press.addEventListener("click", () => {
      const down = title.getAttribute("aria-sort") !== "descending", way = down ? -1 : 1;
      [...top.cells].forEach((one) => one.removeAttribute("aria-sort"));
      title.setAttribute("aria-sort", down ? "descending" : "ascending");
      lines.sort((one, other) => { const [x, y] = [one.cells[at], other.cells[at]], [p, q] = [amount(x), amount(y)];
        if (Number.isNaN(p) || Number.isNaN(q)) return Number.isNaN(p) - Number.isNaN(q) || !x.textContent - !y.textContent
          || way * x.textContent.localeCompare(y.textContent);
        return way * (p - q); });
      top.parentNode.append(...lines);
    });
  });
  return fitted(table);
}
