// The key figures at the top of the page, the mode and the connection.

import { el, show } from "./dom.js";
import * as format from "./format.js";

export function showSummary(page, { overview, series }) {
  show(page.cluster, overview.title);
  show(page.mode, { act: "acting", bind: "binding only" }[overview.mode] ?? "observing");
  page.mode.dataset.tone = overview.mode === "act" ? "strong" : "plain";
  show(page.figures, figures(overview, series));
  show(page.facts, facts(overview));
}

function figures({ totals, threshold, rematches, moves }, series) {
  const lowest = totals.lowestHappiness;
  return [
    figure("Unhappy pods", totals.unhappy.toLocaleString(), `of ${totals.managed.toLocaleString()} managed`,
      totals.unhappy ? "bad" : "good"),
    figure("Lowest happiness", format.probability(lowest), `threshold ${format.probability(threshold)}`,
      lowest !== null && lowest < threshold ? "bad" : ""),
    figure("Availability", format.availability(latest(series?.availability)), "of requests succeed"),
    figure("Latency p95", format.duration(latest(series?.latencyP95)), "response time"),
    figure("Pending pods", totals.pending.toLocaleString(), "without a node", totals.pending ? "bad" : ""),
    figure("Rematches", rematches.toLocaleString(), `${format.counted(moves, "move")} done`),
  ];
}

function figure(name, value, note, tone = "") {
  return el("div", { class: "figure", "data-key": name, "data-tone": tone },
    el("dt", {}, name), el("dd", {}, el("span", { class: "value" }, value), el("span", { class: "note" }, note)));
}

function facts({ planner, cycles, settings, totals, at, power }) {
  const parts = [
    `${format.counted(totals.pods, "pod")} on ${format.counted(totals.nodes, "node")}`,
    ...(power ? powerFacts(power) : []),
    `planner ${planner}`,
    `cycle ${cycles.toLocaleString()}`,
    `settings ${settings.digest} from ${settings.source}`,
    `as of ${format.timeOfDay(at)}`,
  ];
  return parts.map((part) => el("span", {}, part));
}

function powerFacts({ watts, idleNodes, idleWatts, notMeasured, planBefore, planAfter, planIdleNodes }) {
  const idle = idleNodes ? `, ${format.counted(idleNodes, "idle node")} ${format.watts(idleWatts)}` : "";
  const without = notMeasured ? `, without ${format.counted(notMeasured, "node")} not measured` : "";
  const now = `power about ${format.watts(watts)}${idle}${without}`;
  if (planAfter === null) return [now];
  return [now, `last plan ${format.watts(planBefore)} → ${format.watts(planAfter)}, ${format.counted(planIdleNodes, "node")} idle`];
}

export function latest(column = []) {
  return column.findLast((value) => value !== null) ?? null;
}
