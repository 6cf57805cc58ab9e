// Levels of happiness. Each has a colour, a shape and a word, so that colour is never the only sign.

import { probability } from "./format.js";

const NEAR = 0.1;
const CRITICAL = 0.5;

export const LEVELS = [
  ["good", "happy"],
  ["near", "close to its threshold"],
  ["low", "unhappy"],
  ["critical", "very unhappy"],
  ["unknown", "unknown"],
];

export function level({ happiness, threshold, happy, managed }) {
  if (!managed || happiness === null) return "unknown";
  if (!happy) return happiness < threshold * CRITICAL ? "critical" : "low";
  return happiness < threshold + Math.min(NEAR, (1 - threshold) / 2) ? "near" : "good";
}

export function inWords(pod) {
  if (!pod.managed) return "not managed";
  if (pod.happiness === null) return "no evidence yet";
  const side = pod.happy ? "at or above" : "below";
  return `happiness ${probability(pod.happiness)}, ${side} its threshold ${probability(pod.threshold)}`;
}
