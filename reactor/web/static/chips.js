// A pod as a small link: shape and colour by happiness, its value printed.

import { el } from "./dom.js";
import { plain, probability } from "./format.js";
import { inWords, level, LEVELS } from "./happiness.js";
import { podHref } from "./links.js";

const SHORT = 16;
const TAIL = 6;

export function chip(pod) {
  const [head, tail] = parts(pod.key.slice(pod.key.indexOf("/") + 1));
  const words = describe(pod);
  return el("li", { "data-key": pod.uid },
    el("a", { class: "chip", href: podHref(pod.key), "data-level": level(pod), "data-ready": String(pod.ready),
      title: `${pod.key}\n${words.join("\n")}`, "aria-label": `${pod.key}: ${words.join(", ")}` },
      el("span", { class: "mark", "aria-hidden": "true" }),
      el("span", { class: "name" }, head), el("span", { class: "tail" }, tail),
      el("span", { class: "value" }, pod.managed ? probability(pod.happiness) : "")));
}

/** Pods of one template differ at the end of their names, so the middle is cut. */
function parts(name) {
  const characters = [...name];
  const cut = characters.length > SHORT ? characters.length - TAIL : characters.length;
  return [characters.slice(0, cut).join(""), characters.slice(cut).join("")];
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
