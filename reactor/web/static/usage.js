// What a pod used over time: mean and maximum of each axis that was measured, and what is forecast.

import { figure, withTable } from "./chart-figure.js";
import { el } from "./dom.js";
import * as format from "./format.js";
import { draw } from "./plot.js";

const SHOWN = ["cpu", "memory", "network", "disk", "throttled"];
const HEAD = ["Time", "Mean", "Maximum", "Forecast", "At most", "Trust"];

export function usageFigures(usage) {
  const axes = shown(usage);
  if (!axes.length) return [el("p", { class: "empty" }, "Nothing is recorded yet.")];
  return [el("div", { class: "charts" }, axes.map((axis) => figure(key(axis), title(axis), sentence(axis))))];
}

export function drawUsage(parent, usage) {
  for (const axis of shown(usage)) {
    const found = withTable(parent, key(axis), title(axis), axis.forecast ? HEAD : HEAD.slice(0, 3), () => rows(axis, usage.times));
    const lines = [{ name: "mean", values: axis.mean, order: 0 }, { name: "maximum", values: axis.max, order: 1 }];
    const bytes = axis.unit === "bytes";
    const chart = { id: key(axis), lines, floor: 0, bytes, print: (value) => print(axis, value), band: band(axis) };
    draw(found.querySelector(".plot"), chart, { times: usage.times, rematches: [] });
  }
}

const shown = (usage) => (usage ? usage.axes.filter(({ axis }) => SHOWN.includes(axis)) : []);
const key = ({ axis }) => `usage-${axis}`;
const title = ({ axis, unit }) => (unit === "bytes" ? axis : `${axis} (${unit})`);
const print = ({ unit }, value) => format.amount(value, unit);

function rows(axis, times) {
  const { mean, max, forecast } = axis;
  const empty = forecast ? ["", "", ""] : [];
  const measured = times.map((at, index) => [format.fullTime(at), print(axis, mean[index]), print(axis, max[index]), ...empty]);
  if (!forecast) return measured;
  const { values, peaks, trust } = forecast;
  return [...measured, ...forecast.times.map((at, index) =>
    [format.fullTime(at), "", "", print(axis, values[index]), print(axis, peaks[index]), trust[index]])];
}

function band({ forecast }) {
  if (!forecast) return null;
  return { name: `forecast (${trusts(forecast)})`, times: forecast.times, lower: forecast.values, upper: forecast.peaks, order: 2 };
}

const trusts = ({ trust }) => [...new Set(trust)].join(", ");

function sentence(axis) {
  const known = axis.max.filter((value) => value !== null);
  const measured = known.length ? `at most ${print(axis, Math.max(...known))}` : "not measured";
  return axis.forecast ? `${measured}; ${expected(axis)}` : measured;
}

/** Of the farthest horizon. */
function expected(axis) {
  const { times, values, peaks, trust, madeAt } = axis.forecast;
  return `forecast for ${format.span(times.at(-1) - madeAt)}: ${print(axis, values.at(-1))}, at most ${print(axis, peaks.at(-1))} (${trust.at(-1)})`;
}
