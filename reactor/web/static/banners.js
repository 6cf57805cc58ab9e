// Notices at the top of the page: what to know before trusting the numbers.

import { el, show } from "./dom.js";
import { timeOfDay } from "./format.js";

export function showBanners(parent, { overview, lost, trouble }) {
  show(parent, [...connection(overview, lost, trouble), ...(overview ? condition(overview) : [])]);
}

function connection(overview, lost, trouble) {
  const since = overview ? ` This page shows the state of ${timeOfDay(overview.at)}.` : "";
  if (lost) return [banner("lost", "bad", "Connection lost.", `Reconnecting.${since}`)];
  if (trouble) return [banner("trouble", "bad", "The controller did not answer.", `${trouble}.${since}`)];
  return [];
}

function condition({ mode, synced, halted, settings, problems }) {
  const notices = [];
  if (halted !== null) notices.push(banner("halted", "bad", "Halted: no further pod is moved.", halted));
  if (settings.refused.length) notices.push(refused(settings));
  if (!synced) {
    const why = "Decisions start when every watched kind is listed.";
    notices.push(banner("synced", "warn", "Not synced yet.", why));
  }
  notices.push(...problems.map((problem) => banner(`problem-${problem}`, "warn", "Problem:", problem)));
  if (mode === "observe") {
    const how = "Mode observe plans and records, and touches nothing. Set mode: act in the settings to move pods.";
    notices.push(banner("observe", "info", "Observing.", how));
  }
  if (mode === "bind") {
    const how = "Mode bind binds pending pods and evicts nothing. Set mode: act in the settings to move pods.";
    notices.push(banner("bind", "info", "Binding only.", how));
  }
  return notices;
}

function refused({ refused: errors, digest }) {
  const list = errors.map(({ path, message }) => el("li", {}, path ? el("code", {}, path) : null, path ? ": " : "", message));
  const text = `Revision ${digest} stays in force.`;
  return banner("refused", "warn", "New settings refused.", text, el("ul", {}, list));
}

function banner(key, tone, title, text, more = null) {
  return el("div", { class: `banner ${tone}`, "data-key": key, role: tone === "info" ? null : "alert" },
    el("strong", {}, title), " ", el("span", {}, text), more);
}
