// What a pod used over time: mean and maximum of each axis that was measured.

import { figure, withTable } from "./chart-figure.js";
import { el } from "./dom.js";
import * as format from "./format.js";
import { draw } from "./plot.js";

const SHOWN = ["cpu", "memory", "network", "disk", "throttled"];

export function usageFigures(usage) {
  const axes = shown(usage);
  if (!axes.length) return [el("p", { class: "empty" }, "Nothing is recorded yet.")];
  return axes.map((axis) => figure(key(axis), title(axis), sentence(axis)));
}

export function drawUsage(parent, usage) {
  for (const axis of shown(usage)) {
    const rows = () => usage.times.map((at, index) => [format.fullTime(at), print(axis, axis.mean[index]), print(axis, axis.max[index])]);
    const found = withTable(parent, key(axis), title(axis), ["Time", "Mean", "Maximum"], rows);
    const lines = [{ name: "mean", values: axis.mean, order: 0 }, { name: "maximum", values: axis.max, order: 1 }];
    draw(found.querySelector(".plot"), { id: key(axis), lines, floor: 0, print: (value) => print(axis, value) }, { times: usage.times, rematches: [] });
  }
}

const shown = (usage) => (usage ? usage.axes.filter(({ axis }) => SHOWN.includes(axis)) : []);
const key = ({ axis }) => `usage-${axis}`;
const title = ({ axis, unit }) => (unit === "bytes" ? axis : `${axis} (${unit})`);
const print = ({ unit }, value) => format.amount(value, unit);

function sentence(axis) {
  const known = axis.max.filter((value) => value !== null);
  return known.length ? `at most ${print(axis, Math.max(...known))}` : "not measured";
}
