// A pod as a small link: shape and colour by happiness, its value printed.

import { el } from "./dom.js";
import { plain, probability } from "./format.js";
import { inWords, level, LEVELS } from "./happiness.js";
import { podHref } from "./links.js";

const SHORT = 16;
const TAIL = 6;
// What a ReplicaSet appends to the name of its Deployment, and to the names of its pods. Both are written without vowels.
const OF_REPLICA_SET = /^(.+)-[bcdf-hj-np-tv-xz24-9]{5,10}-([bcdf-hj-np-tv-xz24-9]{5})$/;

export function chip(pod) {
  const words = describe(pod);
  return el("li", { "data-key": pod.uid },
    el("a", { class: "chip", href: podHref(pod.key), "data-level": level(pod), "data-ready": String(pod.ready),
      title: `${pod.key}\n${words.join("\n")}`, "aria-label": `${pod.key}: ${words.join(", ")}` },
      el("span", { class: "mark", "aria-hidden": "true" }),
      label(pod.key.slice(pod.key.indexOf("/") + 1)),
      el("span", { class: "value" }, pod.managed ? probability(pod.happiness) : "")));
}

/** A Deployment's pod without the hash, and without the suffix where there is no room. Other names are cut in the middle. */
function label(name) {
  const [, deployment, suffix] = OF_REPLICA_SET.exec(name) ?? [];
  if (deployment) return el("span", { class: "label" }, el("span", { class: "name" }, deployment), el("span", { class: "suffix" }, `…${suffix}`));
  const characters = [...name];
  const cut = characters.length > SHORT ? characters.length - TAIL : characters.length;
  return el("span", { class: "label whole" },
    el("span", { class: "name" }, characters.slice(0, cut).join("")), el("span", { class: "tail" }, characters.slice(cut).join("")));
}

function describe(pod) {
  const words = [inWords(pod), pod.ready ? pod.phase : `${pod.phase}, not ready`];
  if (pod.cpu !== null) words.push(`${plain(pod.cpu)} cores`);
  if (pod.fixed) words.push(`not moved: ${pod.fixed}`);
  return words;
}

export function legend() {
  return LEVELS.map(([name, words]) =>
    el("li", {}, el("span", { class: "chip sample", "data-level": name }, el("span", { class: "mark", "aria-hidden": "true" })), words));
}
