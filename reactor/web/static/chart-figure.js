// A chart as a figure: a sentence at once, a place for the drawing, and a table.

import { el, show } from "./dom.js";

export function figure(id, title, text) {
  return el("figure", { class: "chart", "data-key": id },
    el("figcaption", {}, el("h3", {}, title), el("span", { class: "hint" }, text)),
    el("div", { class: "plot", "data-own": true, role: "img", "aria-label": `${title}: ${text}` }),
    el("details", {}, el("summary", {}, "as a table"), el("div", { class: "scroll", "data-own": true })));
}

/** The figure with this id, with its table while it is open. `rows` is called for it; the first cell heads its row. */
export function withTable(parent, id, title, head, rows) {
  const found = parent.querySelector(`[data-key="${id}"]`);
  const details = found.querySelector("details");
  const fill = () => details.open && show(details.querySelector(".scroll"), table(title, head, rows()));
  details.ontoggle = fill;
  fill();
  return found;
}

function table(title, head, rows) {
  return el("table", { class: "facts-table" },
    el("caption", { class: "visually-hidden" }, title),
    el("thead", {}, el("tr", {}, head.map((name) => el("th", { scope: "col" }, name)))),
    el("tbody", {}, rows.map(([first, ...values]) =>
      el("tr", {}, el("th", { scope: "row" }, first), values.map((value) => el("td", { class: "number" }, value))))));
}
