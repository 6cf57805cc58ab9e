// Nodes as cards with their pods as chips. A card is updated only if its data changes.

import { chip } from "./chips.js";
import { el, show } from "./dom.js";
import * as format from "./format.js";

const HIGH_USE = 0.8;
const drawn = new WeakMap();

export function showNodes(parent, overview, expanded) {
  show(parent, ...overview.nodes.map((node) => el("article", {
    class: "node", "data-key": node.name, "data-own": true, "aria-label": `Node ${node.name}`,
  })), empty(overview), moreNodes(overview));
  for (const card of parent.querySelectorAll(":scope > .node")) {
    const node = overview.nodes.find(({ name }) => name === card.dataset.key);
    const fingerprint = JSON.stringify([node, expanded.has(node.name)]);
    if (drawn.get(card) === fingerprint) continue;
    drawn.set(card, fingerprint);
    show(card, ...content(node, expanded.has(node.name)));
  }
}

export function showPending(parent, { pending, totals }) {
  if (!pending.length) return show(parent);
  const title = `${format.counted(totals.pending, "pod")} without a node`;
  const why = pending.filter((pod) => pod.fixed).map((pod) => el("li", { "data-key": pod.uid }, `${pod.key}: ${pod.fixed}`));
  return show(parent, el("article", { class: "node pending" },
    el("header", {}, el("h3", {}, title)), el("ul", { class: "chips" }, pending.map(chip)),
    why.length ? el("ul", { class: "hint why" }, why) : null));
}

function content(node, expanded) {
  const { pods, managed, unhappy } = node.counts;
  const hidden = pods - node.pods.length;
  return [
    el("header", {},
      el("h3", {}, node.name),
      node.ready ? null : el("span", { class: "pill", "data-tone": "bad" }, "NotReady"),
      node.unschedulable ? el("span", { class: "pill" }, "cordoned") : null,
      el("span", { class: "hint" }, count(pods, managed, unhappy))),
    el("div", { class: "gauges" }, gauge("CPU", node.cpu), gauge("Memory", node.memory)),
    node.pods.length
      ? el("ul", { class: "chips" }, node.pods.map(chip))
      : el("p", { class: "hint" }, "No pods."),
    more(node.name, hidden, expanded),
  ];
}

function count(pods, managed, unhappy) {
  const bad = unhappy ? `, ${unhappy} unhappy` : "";
  return `${format.counted(pods, "pod")}${bad || (managed ? ", all happy" : "")}`;
}

function more(name, hidden, expanded) {
  if (hidden > 0) return el("button", { class: "quiet", type: "button", "data-expand": name }, `+${hidden.toLocaleString()} more`);
  return expanded ? el("button", { class: "quiet", type: "button", "data-expand": name }, "Show fewer") : null;
}

function gauge(name, measured) {
  if (!measured || measured.used === null) {
    const has = measured ? ` of ${format.withUnit(measured.capacity, measured.unit)}` : "";
    return el("div", { class: "gauge" }, el("span", { class: "name" }, name), el("span", { class: "track missing" }),
      el("span", { class: "numbers" }, `not measured${has}`));
  }
  const share = measured.capacity > 0 ? measured.used / measured.capacity : 0;
  const requested = measured.requested === null || !measured.capacity ? null : measured.requested / measured.capacity;
  const requests = requested === null ? "" : `, requested ${format.percent(requested)}`;
  return el("div", { class: "gauge", "data-high": share >= HIGH_USE },
    el("span", { class: "name" }, name),
    el("span", { class: "track", role: "img", "aria-label": `${name} used ${format.percent(share)}${requests}`,
      title: `used ${format.percent(share)}${requests}` },
      el("span", { class: "fill", style: `width: ${bounded(share)}%` }),
      requested === null ? null : el("span", { class: "tick", style: `left: ${bounded(requested)}%` })),
    el("span", { class: "numbers" },
      `${format.amount(measured.used, measured.unit)} / ${format.withUnit(measured.capacity, measured.unit)} `,
      el("strong", {}, format.percent(share))));
}

const bounded = (share) => (Math.min(1, Math.max(0, share)) * 100).toFixed(1);

function empty({ nodes, totals }) {
  if (nodes.length) return null;
  const text = totals.nodes ? "No node and no pod matches the search." : "No nodes yet.";
  return el("p", { class: "empty", "data-key": "(empty)" }, text);
}

function moreNodes({ nodes, totals }) {
  const hidden = totals.matchingNodes - nodes.length;
  if (hidden <= 0) return null;
  return el("button", { class: "wide", type: "button", "data-key": "(more)", "data-more-nodes": true },
    `Show more: ${format.counted(hidden, "node")} not shown; the worst come first`);
}
