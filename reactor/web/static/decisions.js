// The list of decisions, newest first. Details that are open stay open while others arrive.

import { causes } from "./causes.js";
import { el, show } from "./dom.js";
import * as format from "./format.js";
import { podHref } from "./links.js";

const SHOWN_MOVES = 4;
const NO_DECISIONS = "No decisions yet. There will be one when a pod falls below its threshold, waits or is placed.";
const NO_OTHERS = "No decisions yet but waits, if any. Untick “Hide waits” to see them.";

export function showDecisions(page, { decisions, waits, complete, overview }) {
  show(page.decisions, decisions.map((decision) => entry(decision, overview.at)));
  page.decisionsEmpty.hidden = decisions.length > 0;
  page.decisionsEmpty.textContent = waits ? NO_DECISIONS : NO_OTHERS;
  page.more.hidden = complete || !decisions.length;
}

/** The newest page and the known entries, each once. After a gap the known ones are dropped; "load older" loads them. */
export function merge(known, newest) {
  const last = newest.at(-1);
  const meets = !last || known.some(({ id }) => id >= last.id);
  const older = meets ? known.filter(({ id }) => last && id < last.id) : [];
  return { decisions: [...newest, ...older], gap: known.length > 0 && !meets };
}

/** `about` is the pod whose page this is: its name is not repeated. */
export function entry(decision, now, about = null) {
  const named = decision.pod !== null && decision.pod !== about;
  return el("li", { class: "decision", "data-key": decision.id, "data-kind": decision.kind },
    el("div", { class: "line" },
      el("span", { class: "kind" }, decision.kind),
      el("time", { datetime: format.isoTime(decision.at), title: `${format.fullTime(decision.at)}, cycle ${decision.cycle}` },
        format.readableTime(decision.at, now)),
      el("code", { class: "reason" }, decision.reason)),
    el("p", {}, named ? podLink(decision.pod) : null, named ? " " : null, el("span", {}, decision.text)),
    moveList(decision.moves), causeList(decision.unhappy));
}

function moveList(moves) {
  if (!moves.length) return null;
  const first = moves.slice(0, SHOWN_MOVES).map(move);
  const others = moves.slice(SHOWN_MOVES).map(move);
  return el("div", {}, el("ul", { class: "moves" }, first), others.length
    ? el("details", {}, el("summary", {}, format.counted(others.length, "more move")), el("ul", { class: "moves" }, others))
    : null);
}

function causeList(unhappy) {
  const first = unhappy.slice(0, SHOWN_MOVES).map((one) => causes(one, one.pod.slice(one.pod.indexOf("/") + 1)));
  return first.length ? el("div", { class: "causes" }, first) : null;
}

function move({ pod, source, target, state, reasons, outcome }) {
  const why = [...reasons, outcome].filter(Boolean);
  return el("li", { "data-key": `${pod} ${target}`, "data-state": state },
    el("span", { class: "state" }, state), " ",
    podLink(pod), " ",
    el("span", { class: "way" }, source ?? "pending", el("span", { class: "visually-hidden" }, " to "),
      el("span", { class: "arrow", "aria-hidden": "true" }, " → "), target),
    why.length ? el("details", {}, el("summary", {}, "why"), el("ul", {}, why.map((reason) => el("li", {}, reason)))) : null);
}

function podLink(key) {
  const name = key.slice(key.indexOf("/") + 1);
  return el("a", { class: "pod-link", href: podHref(key), title: key }, name);
}

/** The text for screen readers about new decisions. Waits are only counted. */
export function announcement(fresh) {
  const waits = fresh.filter(({ kind }) => kind === "wait").length;
  const texts = fresh.filter(({ kind }) => kind !== "wait").slice(0, 2).map(({ kind, text }) => `${kind}: ${text}`);
  if (waits) texts.push(`${format.counted(waits, "new wait")}`);
  return texts.join(". ");
}
