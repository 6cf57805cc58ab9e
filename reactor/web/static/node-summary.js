// All nodes of a large cluster in one line: counts and how loaded they are. The cards below show only the worst.

import { el, show } from "./dom.js";
import * as format from "./format.js";

const HIGH_BAND = 8;

export function showNodeSummary(parent, { totals, nodeSummary }, most) {
  if (!nodeSummary || totals.nodes <= most) return show(parent);
  return show(parent, el("div", { class: "node-summary" }, el("p", { class: "facts" }, facts(totals, nodeSummary)), bands(nodeSummary)));
}

function facts({ nodes }, { withUnhappyPods, notReady, unschedulable, notMeasured }) {
  const fact = (count, text, tone) => (count ? el("span", { "data-tone": tone }, `${count.toLocaleString()} ${text}`) : null);
  return [
    el("strong", {}, format.counted(nodes, "node")),
    fact(withUnhappyPods, "with unhappy pods", "bad") ?? el("span", {}, "no unhappy pods"),
    fact(notReady, "NotReady", "bad"),
    fact(unschedulable, "cordoned"),
    fact(notMeasured, "not measured"),
  ];
}

function bands({ loadBands }) {
  const highest = Math.max(1, ...loadBands);
  const width = 100 / loadBands.length;
  const range = (band) => (band === loadBands.length - 1 ? `${band * width} % and more` : `${band * width} to ${(band + 1) * width} %`);
  const words = loadBands.map((count, band) => `${range(band)}: ${count.toLocaleString()}`).filter((_, band) => loadBands[band]);
  return el("div", { class: "bands", role: "img", "aria-label": `Nodes by load, CPU or memory. ${words.join("; ")}` },
    el("span", { class: "hint" }, "load 0 %"),
    el("span", { class: "bars" }, loadBands.map((count, band) =>
      el("span", { class: "bar", title: `${range(band)} of CPU or memory used: ${format.counted(count, "node")}`, "data-high": band >= HIGH_BAND,
        style: `height: ${count ? Math.max(8, (count / highest) * 100).toFixed(0) : 0}%` }))),
    el("span", { class: "hint" }, "100 %"));
}
