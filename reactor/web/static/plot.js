// Draws a chart of lines over time.

import { colour, drawInto, frame } from "./plotly.js";

const DASHES = ["solid", "dash", "dot", "dashdot", "longdash", "longdashdot"];
const COLOURS = 6;
// Values that may be no line yet: a single one, or one with gaps on both sides.
const FEW = 4;
const MOST_TICKS = 5;
// With seconds if ticks are less than a minute apart.
const TICKS = [
  { dtickrange: [null, 59999], value: "%H:%M:%S" },
  { dtickrange: [60000, null], value: "%H:%M" },
];

export function draw(parent, chart, series) {
  return drawInto(parent, () =>
    ({ traces: [...traces(chart, series.times), ...levelTraces(chart, series.times), ...bandTraces(chart)], layout: layout(chart, series) }));
}

/** A threshold. Its name is in the legend, where it covers no line. */
function levelTraces({ level }, times) {
  if (level === undefined || !times.length) return [];
  return [{ type: "scatter", mode: "lines", name: `threshold ${level.toFixed(2)}`, x: [localTime(times[0]), localTime(times.at(-1))],
    y: [level, level], line: { width: 1, color: colour("--warn"), dash: "dash" }, hoverinfo: "skip" }];
}

/** A forecast as a dashed line, filled up to what it stays below. */
function bandTraces({ band, print }) {
  if (!band) return [];
  const shared = { type: "scatter", x: band.times.map(localTime), hovertemplate: "%{text}", legendgroup: band.name };
  const ink = colour(`--line-${band.order % COLOURS}`);
  return [
    { ...shared, mode: "lines+markers", name: inert(band.name), y: band.lower, text: band.lower.map((value) => print(value)),
      line: { width: 1.75, color: ink, dash: "dash" }, marker: { size: 4 } },
    { ...shared, mode: "lines", name: "at most", showlegend: false, y: band.upper, text: band.upper.map((value) => print(value)),
      line: { width: 1, color: ink, dash: "dot" }, fill: "tonexty" },
  ];
}

function traces({ lines, print }, times) {
  const x = times.map(localTime);
  return lines.map(({ name, values, order }) => ({
    type: "scatter", mode: values.filter((value) => value !== null).length < FEW ? "lines+markers" : "lines", name: inert(name), x, y: values,
    line: { width: 1.75, color: colour(`--line-${order % COLOURS}`), dash: DASHES[order % DASHES.length] },
    text: values.map((value) => print(value)), hovertemplate: "%{text}", connectgaps: false,
  }));
}

function layout({ share, floor, ceiling, bytes, lines, id, band, print }, { times, rematches }) {
  const ink = colour("--muted");
  const rule = colour("--line");
  const upright = (at) => ({ type: "line", yref: "paper", y0: 0, y1: 1, x0: localTime(at), x1: localTime(at),
    line: { color: ink, width: 1, dash: "dot" } });
  const visible = rematches.filter((at) => at >= times[0] && at <= times.at(-1));
  const range = bounds([...lines, { values: band?.upper ?? [] }], floor, ceiling);
  return {
    ...frame(id), showlegend: lines.length > 1, hovermode: "x unified",
    xaxis: { type: "date", gridcolor: rule, linecolor: rule, nticks: 6, tickformatstops: TICKS, hoverformat: "%H:%M:%S", fixedrange: false },
    yaxis: { gridcolor: rule, zeroline: false, nticks: 5, tickformat: share ? ".0%" : "", ticksuffix: id === "latency" ? " s" : "",
      fixedrange: true, automargin: true, range, ...(bytes ? binaryTicks(range, print) : {}) },
    shapes: visible.map(upright),
  };
}

/** The prefixes of plotly.js are decimal; sizes are printed by powers of 1024. */
function binaryTicks([low, high], print) {
  const step = Math.max(1, 2 ** Math.ceil(Math.log2((high - low) / MOST_TICKS)));
  const first = Math.ceil(low / step);
  const tickvals = Array.from({ length: Math.floor(high / step) - first + 1 }, (_, index) => (first + index) * step);
  return { tickvals, ticktext: tickvals.map((value) => print(value)) };
}

/** The range starts at a fixed value for shares, and ends above the data. */
function bounds(lines, floor, ceiling) {
  const values = lines.flatMap((line) => line.values).filter((value) => value !== null);
  if (!values.length) return [0, 1];
  const highest = Math.max(...values);
  const lowest = Math.min(...values);
  const room = Math.max((highest - lowest) * 0.08, 0.005);
  return [floor ?? Math.max(0, lowest - room), ceiling === undefined ? highest + room : ceiling + room / 4];
}

/** plotly.js shows dates as they are written: local time without a zone. */
function localTime(seconds) {
  const date = new Date(seconds * 1000);
  return new Date(date - date.getTimezoneOffset() * 60_000).toISOString().slice(0, -1);
}

/** plotly.js reads a little HTML in names. */
const inert = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
