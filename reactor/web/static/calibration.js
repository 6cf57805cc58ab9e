// The calibration of the failure curve: which share of probes failed, by the load of the node, and which was predicted.

import { figure, withTable } from "./chart-figure.js";
import { show } from "./dom.js";
import * as format from "./format.js";
import { colour, drawInto, frame } from "./plotly.js";

const ID = "calibration";
const TITLE = "Failed probes by node load";
const HEAD = ["Node load", "Probes", "Failed", "Predicted"];
const SMALLEST = 7;
const LARGEST = 16;

export function showCalibration(parent, calibration) {
  show(parent, figure(ID, TITLE, calibration.text));
  const found = withTable(parent, ID, TITLE, HEAD, () => calibration.bins.map(row));
  drawInto(found.querySelector(".plot"), () => ({ traces: traces(calibration), layout: layout(calibration) }));
}

const row = (bin) => [range(bin), count(bin), share(bin.observed), share(bin.expected)];
const range = ({ begin, end }) => `${format.percent(begin)} to ${format.percent(end)}`;
const count = ({ probes }) => Math.round(probes).toLocaleString();
const share = (value) => format.percent(value, 2);

function traces({ bins, loads, curve, prior }) {
  const line = (name, { probabilities }, opacity, style) =>
    ({ type: "scatter", mode: "lines", name, x: loads, y: probabilities, opacity, line: style, hoverinfo: "skip" });
  const points = (name, key, marker) => ({ type: "scatter", mode: "markers", name, x: bins.map(({ load }) => load),
    y: bins.map((bin) => bin[key]), marker, text: bins.map((bin) => `${range(bin)}: ${share(bin[key])} of ${count(bin)} probes`),
    hovertemplate: `%{text} ${name}<extra></extra>` });
  return [
    // A wide band, which also shows where the fitted curve is the same.
    line("prior", prior, 0.4, { width: 8, color: colour("--line-5") }),
    line("fitted curve", curve, 1, { width: 1.75, color: colour("--line-0") }),
    points("failed", "observed", { size: sizes(bins), color: colour("--line-1"), opacity: 0.85 }),
    points("predicted", "expected", { size: 7, symbol: "x-thin", line: { width: 1.75, color: colour("--text") } }),
  ];
}

/** The area of a point is the number of its probes. */
function sizes(bins) {
  const most = Math.max(1, ...bins.map(({ probes }) => probes));
  return bins.map(({ probes }) => Math.max(SMALLEST, LARGEST * Math.sqrt(probes / most)));
}

function layout({ bins, loads, curve }) {
  const axis = { gridcolor: colour("--line"), linecolor: colour("--line"), zeroline: false, tickformat: ".0%", fixedrange: true };
  const highest = Math.max(curve.ceiling, ...bins.map(({ observed }) => observed));
  return {
    ...frame(ID), height: 230, margin: { l: 44, r: 8, t: 6, b: 38 }, hovermode: "closest", showlegend: true,
    xaxis: { ...axis, range: [loads[0], loads.at(-1)], title: { text: "load of the node", standoff: 4 } },
    yaxis: { ...axis, nticks: 5, range: [-0.02 * highest, 1.08 * highest] },
  };
}
