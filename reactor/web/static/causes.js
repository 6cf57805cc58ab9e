// How likely it was that a pod fails because of where it is, and what that is made of.

import { el } from "./dom.js";
import * as format from "./format.js";

/** Closed at first; null without evidence. */
export function causes({ placementProbability: likely, evidence }, name = "") {
  if (!evidence.length) return null;
  const head = ["Evidence", "Ratio", "What is known"].map((title) => el("th", { scope: "col" }, title));
  return el("details", { "data-key": `causes ${name}` },
    el("summary", {}, name ? `evidence about ${name}` : "evidence", `: ${format.percent(likely)} likely its place`),
    el("table", { class: "facts-table" },
      el("thead", {}, el("tr", {}, head)),
      el("tbody", {}, evidence.map((part) => el("tr", { "data-key": part.name },
        el("th", { scope: "row" }, part.name),
        el("td", { class: "number" }, `× ${Number(part.ratio.toPrecision(3))}`),
        el("td", {}, part.text))))));
}
