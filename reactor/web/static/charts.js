// Charts as figures: a sentence at once, the drawing when plotly.js is loaded, and a table.

import { charts, rows, summary } from "./chart-data.js";
import { el, show } from "./dom.js";
import { draw } from "./plot.js";

export function showCharts(page, series, threshold) {
  const { times } = series;
  const wanted = charts(series, threshold);
  show(page.charts, wanted.map((chart) => figure(chart, times)));
  for (const chart of wanted) {
    const parent = page.charts.querySelector(`[data-key="${chart.id}"]`);
    fillTable(parent, chart, times);
    draw(parent.querySelector(".plot"), chart, series);
  }
  show(page.chartsNote, note(series));
}

function figure(chart, times) {
  const text = summary(chart, times);
  return el("figure", { class: "chart", "data-key": chart.id },
    el("figcaption", {}, el("h3", {}, chart.title), el("span", { class: "hint" }, text)),
    el("div", { class: "plot", "data-own": true, role: "img", "aria-label": `${chart.title}: ${text}` }),
    el("details", {}, el("summary", {}, "as a table"), el("div", { class: "scroll", "data-own": true })));
}

function fillTable(parent, chart, times) {
  const details = parent.querySelector("details");
  const fill = () => details.open && show(details.querySelector(".scroll"), table(chart, times));
  details.ontoggle = fill;
  fill();
}

function table(chart, times) {
  const head = ["Time", ...chart.lines.map(({ name }) => name)].map((name) => el("th", { scope: "col" }, name));
  return el("table", { class: "facts-table" },
    el("caption", { class: "visually-hidden" }, chart.title),
    el("thead", {}, el("tr", {}, head)),
    el("tbody", {}, rows(chart, times).map(([time, ...values]) =>
      el("tr", {}, el("th", { scope: "row" }, time), values.map((value) => el("td", { class: "number" }, value))))));
}

function note({ nodes, nodeCount, rematches }) {
  const parts = [];
  if (rematches.length) parts.push("dotted upright lines: rematches");
  if (nodeCount > nodes.length) parts.push(`the ${nodes.length} busiest of ${nodeCount.toLocaleString()} nodes`);
  return parts.join("; ");
}
