// How the happiness of a pod is computed, with its numbers.

import { el } from "./dom.js";
import * as format from "./format.js";
import { inWords, level } from "./happiness.js";

const SOURCES = {
  events: "Unhealthy events",
  counters: "Probe counters (Prometheus)",
  kills: "Failures inferred from kills",
};

export function evidence(pod, now) {
  const found = pod.happiness;
  if (!found) return [el("p", { class: "empty" }, pod.managed ? "No result of a liveness probe yet." : "This pod is not managed.")];
  const values = { happiness: found.value, threshold: found.threshold, happy: found.happy, managed: true };
  return [
    el("div", { class: "verdict" },
      el("span", { class: "chip big", "data-level": level(values) },
        el("span", { class: "mark", "aria-hidden": "true" }), el("span", { class: "value" }, format.probability(found.value))),
      el("p", {}, `${inWords(values)} (${found.thresholdSource}).`)),
    formula(found),
    sources(found),
    messages(found, now),
  ];
}

function formula({ goodwill, successes, failures, halfLife, value }) {
  const [m, s, f] = [goodwill, successes, failures].map((count) => format.plain(count));
  return el("figure", { class: "formula" },
    el("code", {}, `Pr = (m + S) / (m + S + F) = (${m} + ${s}) / (${m} + ${s} + ${f}) = ${format.probability(value)}`),
    el("figcaption", { class: "hint" },
      `m: ${m} pseudo-probes of goodwill; S: ${s} successful and F: ${f} failed probes; `
      + `both counts halve every ${format.span(halfLife)}.`));
}

function sources({ sources: counts }) {
  if (!counts.length) return null;
  const head = ["Source", "Failures"].map((name) => el("th", { scope: "col" }, name));
  return el("table", { class: "facts-table" },
    el("thead", {}, el("tr", {}, head)),
    el("tbody", {}, counts.map(({ source, failures }) => el("tr", { "data-key": source },
      el("th", { scope: "row" }, SOURCES[source] ?? source),
      el("td", { class: "number" }, format.plain(failures))))));
}

function messages({ messages: failures, lastFailure }, now) {
  if (lastFailure === null && !failures.length) return el("p", { class: "hint" }, "No failed probes.");
  const last = lastFailure === null ? null
    : el("p", { class: "hint" }, `Last failure ${format.readableTime(lastFailure, now)} (${format.ago(lastFailure, now)}).`);
  return el("div", {}, last, el("ul", { class: "messages" }, failures.map(({ at, count, text }) => el("li", {},
    el("time", { datetime: format.isoTime(at) }, format.readableTime(at, now)), ` ×${count} `, el("span", {}, text)))));
}
