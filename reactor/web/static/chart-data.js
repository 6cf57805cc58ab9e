// The data of the charts: lines to draw, a sentence and a table to read.

import * as format from "./format.js";

const TABLE_ROWS = 24;

/** Title, number format and lines of every chart. `order` selects the colour and dash of a line. */
export function charts(series, threshold) {
  const line = (name, values, order = 0) => ({ name, values, order });
  const nodes = (axis) => series.nodes.map((node, order) => line(node.name, node[axis], order));
  return [
    { id: "availability", title: "Availability", print: format.availability, share: true, ceiling: 1,
      lines: [line("availability", series.availability)] },
    { id: "latency", title: "Latency p95", print: format.duration, lines: [line("p95", series.latencyP95)] },
    { id: "cpu", title: "Node CPU", print: format.percent, share: true, floor: 0, lines: nodes("cpu") },
    { id: "memory", title: "Node memory", print: format.percent, share: true, floor: 0, lines: nodes("memory") },
    { id: "happiness", title: "Happiness", print: format.probability, floor: 0, ceiling: 1, level: threshold,
      lines: [line("lowest", series.happinessMin, 0), line("mean", series.happinessMean, 2)] },
  ];
}

/** The chart in one sentence: the value now and the worst value. */
export function summary({ lines, print, id }, times) {
  const parts = lines.map((line) => describe(line, print, times, lines.length > 1, id)).filter(Boolean);
  return parts.length ? parts.join("; ") : "no data yet";
}

function describe({ name, values }, print, times, named, id) {
  const now = values.findLast((value) => value !== null);
  if (now === undefined) return named ? `${name} not measured` : "";
  const worst = worstOf(values, id === "availability" || id === "happiness");
  const extreme = named ? "" : `, ${id === "availability" ? "lowest" : "highest"} ${print(values[worst])} at ${format.timeOfDay(times[worst])}`;
  return `${named ? `${name} ` : ""}${print(now)}${named ? "" : " now"}${extreme}`;
}

function worstOf(values, lowIsBad) {
  let worst = -1;
  values.forEach((value, index) => {
    if (value === null) return;
    if (worst < 0 || (lowIsBad ? value < values[worst] : value > values[worst])) worst = index;
  });
  return worst;
}

/** A bounded number of rows at even distances, newest first. */
export function rows({ lines, print }, times) {
  const step = Math.max(1, Math.ceil(times.length / TABLE_ROWS));
  const chosen = [];
  for (let index = times.length - 1; index >= 0; index -= step) chosen.push(index);
  return chosen.map((index) => [format.timeOfDay(times[index]), ...lines.map(({ values }) => print(values[index]))]);
}
