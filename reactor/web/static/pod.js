// The page of a pod: identity, happiness with its evidence, why it is on its node and not on others.

import { causes } from "./causes.js";
import { entry } from "./decisions.js";
import { el, show } from "./dom.js";
import { evidence } from "./evidence.js";
import * as format from "./format.js";
import { overviewHref } from "./links.js";
import { drawUsage, usageFigures } from "./usage.js";

export function showPod(parent, pod, usage, now) {
  const children = pod.missing ? missing(pod) : page(pod, usage, now);
  show(parent, el("nav", { "aria-label": "Breadcrumb" }, el("a", { href: overviewHref }, "← Overview")), ...children);
  if (!pod.missing && usage) drawUsage(parent, usage);
}

function missing({ namespace, name }) {
  return [
    el("h1", { tabindex: "-1" }, `${namespace}/${name}`),
    el("p", { class: "empty" }, "There is no such pod now. The replacement of a moved pod has another name; see ",
      el("a", { href: overviewHref }, "the decisions"), "."),
  ];
}

function page(pod, usage, now) {
  return [
    el("h1", { tabindex: "-1" }, el("span", { class: "namespace" }, `${pod.namespace}/`), pod.name),
    el("p", { class: "pills" }, pills(pod)),
    el("div", { class: "pod-grid" },
      section("happiness", "Happiness and its evidence", evidence(pod, now)),
      section("placement", "Why here, why not there", placement(pod, now)),
      section("decision", "Decision in force", inForce(pod, now)),
      section("resources", "Resources", resources(pod.resources)),
      section("identity", "Identity", identity(pod, now)),
      section("usage", "Usage of the last day", usageFigures(usage)),
      section("history", "History", history(pod, now))),
  ];
}

function section(key, title, children) {
  return el("section", { class: "panel", "data-key": key, "aria-labelledby": `pod-${key}` },
    el("h2", { id: `pod-${key}` }, title), ...children);
}

function pills({ phase, ready, managed, fixed, node }) {
  return [
    el("span", { class: "pill" }, node ? `on ${node}` : "no node"),
    el("span", { class: "pill", "data-tone": ready ? "plain" : "bad" }, ready ? `${phase}, ready` : `${phase}, not ready`),
    el("span", { class: "pill" }, managed ? "managed" : "not managed"),
    el("span", { class: "pill" }, fixed ? `not moved: ${fixed}` : "may be moved"),
  ];
}

function placement({ placement: plan, node }, now) {
  if (!plan) return [el("p", { class: "empty" }, "This pod is in no plan yet.")];
  return [
    el("h3", {}, node ? `Why ${node}` : "Why no node"),
    list(plan.whyHere, "No reason is given."),
    el("h3", {}, "Why not the others"),
    plan.whyNot.length
      ? el("table", { class: "facts-table" },
        el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Node"), el("th", { scope: "col" }, "Reason"))),
        el("tbody", {}, plan.whyNot.map((other) => el("tr", { "data-key": other.node },
          el("th", { scope: "row" }, other.node), el("td", {}, other.reason)))))
      : el("p", { class: "hint" }, "There are no other nodes."),
    el("p", { class: "hint" }, `Plan ${plan.plan} by ${plan.planner}, ${format.readableTime(plan.at, now)} (${format.ago(plan.at, now)}).`),
  ];
}

function list(items, none) {
  return items.length ? el("ul", { class: "plain-list" }, items.map((item) => el("li", {}, item))) : el("p", { class: "hint" }, none);
}

function inForce({ decision }, now) {
  if (!decision) return [el("p", { class: "empty" }, "None.")];
  const until = decision.until === null ? "" : ` Evaluated again ${format.ago(decision.until, now)}.`;
  return [
    el("p", { class: "decision", "data-kind": decision.kind },
      el("span", { class: "kind" }, decision.kind), " ", el("code", { class: "reason" }, decision.reason)),
    el("p", {}, decision.text),
    causes(decision),
    el("p", { class: "hint" }, `Since ${format.readableTime(decision.at, now)} (${format.ago(decision.at, now)}).${until}`),
  ];
}

function resources(axes) {
  if (!axes.length) return [el("p", { class: "empty" }, "No usage and no requests.")];
  const head = ["", "Usage", "Request", "Peak", "Node"].map((name) => el("th", { scope: "col" }, name));
  const row = ({ axis, unit, usage, request, peak, capacity }) => el("tr", { "data-key": axis },
    el("th", { scope: "row" }, unit === "bytes" ? axis : `${axis} (${unit})`),
    ...[usage, request, peak, capacity].map((value) => el("td", { class: "number" }, format.amount(value, unit))));
  return [el("div", { class: "scroll" },
    el("table", { class: "facts-table" }, el("thead", {}, el("tr", {}, head)), el("tbody", {}, axes.map(row))))];
}

function identity(pod, now) {
  const facts = [
    ["UID", pod.uid],
    ["Owner", pod.workload || "none"],
    ["Scheduler", pod.scheduler],
    ["Created", `${format.fullTime(pod.created)} (${format.ago(pod.created, now)})`],
    ["Restarts", String(pod.restarts)],
  ];
  return [el("dl", { class: "pairs" }, facts.flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]))];
}

function history({ history: decisions, namespace, name }, now) {
  if (!decisions.length) return [el("p", { class: "empty" }, "No decisions about this pod yet.")];
  return [el("ol", { class: "decisions" }, decisions.map((decision) => entry(decision, now, `${namespace}/${name}`)))];
}
