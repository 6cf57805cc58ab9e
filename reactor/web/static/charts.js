// The charts over time.

import { charts, rows, summary } from "./chart-data.js";
import { figure, withTable } from "./chart-figure.js";
import { show } from "./dom.js";
import { draw } from "./plot.js";

export function showCharts(page, series, threshold) {
  const { times } = series;
  const wanted = charts(series, threshold);
  show(page.charts, wanted.map((chart) => figure(chart.id, chart.title, summary(chart, times))));
  for (const chart of wanted) {
    const head = ["Time", ...chart.lines.map(({ name }) => name)];
    const found = withTable(page.charts, chart.id, chart.title, head, () => rows(chart, times));
    draw(found.querySelector(".plot"), chart, series);
  }
  show(page.chartsNote, note(series));
}

function note({ nodes, nodeCount, rematches }) {
  const parts = [];
  if (rematches.length) parts.push("dotted upright lines: rematches");
  if (nodeCount > nodes.length) parts.push(`the ${nodes.length} busiest of ${nodeCount.toLocaleString()} nodes`);
  return parts.join("; ");
}
