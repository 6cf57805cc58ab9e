// The page: which view is shown, when it is fetched again, and what clicks do.

import { fetchCalibration, fetchDecisions, fetchOverview, fetchPod, fetchSeries, fetchUsage, PAGE_OF_DECISIONS } from "./api.js";
import { showBanners } from "./banners.js";
import { showCalibration } from "./calibration.js";
import { showCharts } from "./charts.js";
import { legend } from "./chips.js";
import { announcement, merge, showDecisions } from "./decisions.js";
import { show } from "./dom.js";
import { overviewHref, route } from "./links.js";
import { installNavigation } from "./navigation.js";
import { showNodeSummary } from "./node-summary.js";
import { showNodes, showPending } from "./nodes.js";
import { showPod } from "./pod.js";
import { follow } from "./stream.js";
import { showSummary } from "./summary.js";
import { installThemeToggle } from "./theme-toggle.js";

const SERIES_EVERY_MS = 3000;
const CALIBRATION_EVERY_MS = 30_000;
const USAGE_EVERY_MS = 60_000;
const ANNOUNCE_EVERY_MS = 5000;
const FIRST_NODES = 12;
const MORE_NODES = 48;

const byId = (id) => document.getElementById(id);
const page = {
  cluster: byId("cluster"), mode: byId("mode"), connection: byId("connection"), banners: byId("banners"),
  loading: byId("loading"), overview: byId("overview"), pod: byId("pod"), figures: byId("figures"), facts: byId("facts"),
  nodeSummary: byId("node-summary"), nodes: byId("nodes"), pending: byId("pending"), charts: byId("charts"), chartsNote: byId("charts-note"), calibration: byId("calibration"),
  decisions: byId("decisions"), decisionsEmpty: byId("decisions-empty"), more: byId("more"), announcer: byId("announcer"),
};
const state = {
  overview: null, series: null, seriesAt: -Infinity, calibration: null, calibrationAt: -Infinity, redraw: false, decisions: [], complete: false, waits: false, pod: null, usage: null, usageOf: "", usageAt: -Infinity,
  lost: false, trouble: "", search: "", expanded: new Set(), nodes: FIRST_NODES, announced: -Infinity, newest: null,
};

let rounds = null;
let wanted = false;

/** One round of requests at a time. Changes during a round cause one more round. */
function refresh() {
  if (document.hidden) return Promise.resolve();
  wanted = true;
  rounds ??= loadWhileWanted().finally(() => (rounds = null));
  return rounds;
}

async function loadWhileWanted() {
  while (wanted) {
    wanted = false;
    await load();
  }
}

async function load() {
  try {
    const where = route();
    state.overview = await fetchOverview(state);
    if (where) await loadPod(where);
    else await Promise.all([loadSeries(), loadCalibration(), loadDecisions()]);
    state.trouble = "";
  } catch (error) {
    state.trouble = error.message;
  }
  render();
}

async function loadPod({ namespace, name }) {
  state.pod = (await fetchPod(namespace, name)) ?? { namespace, name, missing: true };
  if (state.usageOf === `${namespace}/${name}` && performance.now() - state.usageAt < USAGE_EVERY_MS) return;
  state.usageOf = `${namespace}/${name}`;
  state.usage = await fetchUsage(state.usageOf);
  state.usageAt = performance.now();
}

async function loadSeries() {
  if (performance.now() - state.seriesAt < SERIES_EVERY_MS) return;
  state.series = await fetchSeries();
  state.seriesAt = performance.now();
  state.redraw = true;
}

async function loadCalibration() {
  if (performance.now() - state.calibrationAt < CALIBRATION_EVERY_MS) return;
  state.calibration = await fetchCalibration();
  state.calibrationAt = performance.now();
  state.redraw = true;
}

async function loadDecisions() {
  const { waits } = state;
  const newest = await fetchDecisions({ waits });
  if (waits !== state.waits) return;
  const { decisions, gap } = merge(state.decisions, newest);
  if (gap || decisions.length <= newest.length) state.complete = newest.length < PAGE_OF_DECISIONS;
  state.decisions = decisions;
  announce(newest);
}

/** The first decisions are not announced. Decisions that arrive together are announced together. */
function announce(newest) {
  const fresh = newest.filter(({ id }) => id > (state.newest ?? Infinity));
  if (state.newest !== null && performance.now() - state.announced < ANNOUNCE_EVERY_MS) return;
  state.newest = newest[0]?.id ?? 0;
  if (!fresh.length) return;
  state.announced = performance.now();
  page.announcer.textContent = announcement(fresh);
}

function render() {
  showBanners(page.banners, state);
  if (!state.overview) return;
  const where = route();
  page.loading.hidden = true;
  page.overview.hidden = Boolean(where);
  page.pod.hidden = !where;
  showSummary(page, state);
  if (where) renderPod(where);
  else renderOverview();
}

function renderPod({ namespace, name }) {
  document.title = `${name} · Rematch`;
  if (state.pod?.name === name && state.pod.namespace === namespace) showPod(page.pod, state.pod, state.usage, state.overview.at);
}

function renderOverview() {
  const { unhappy } = state.overview.totals;
  document.title = `${unhappy ? `(${unhappy}) ` : ""}${state.overview.title} · Rematch`;
  showNodeSummary(page.nodeSummary, state.overview, FIRST_NODES);
  showNodes(page.nodes, state.overview, state.expanded);
  showPending(page.pending, state.overview);
  showDecisions(page, state);
  if (state.series && state.redraw) showCharts(page, state.series, state.overview.threshold);
  if (state.calibration && state.redraw) showCalibration(page.calibration, state.calibration);
  state.redraw = false;
}

async function loadOlder() {
  const { waits } = state;
  try {
    const older = await fetchDecisions({ waits, before: state.decisions.at(-1).id });
    if (waits !== state.waits) return;
    state.decisions = [...state.decisions, ...older];
    state.complete = older.length < PAGE_OF_DECISIONS;
  } catch (error) {
    state.trouble = error.message;
  }
  render();
}

function setConnection(lost) {
  state.lost = lost;
  show(page.connection, lost ? "connection lost" : "live");
  page.connection.dataset.state = lost ? "lost" : "live";
  showBanners(page.banners, state);
}

function expand(event) {
  const { expand: name, moreNodes } = event.target.dataset;
  if (moreNodes !== undefined) state.nodes += MORE_NODES;
  else if (name === undefined) return;
  else if (!state.expanded.delete(name)) state.expanded.add(name);
  refresh();
}

function install() {
  // Relative to the first URL. The page of a pod is deeper than the overview.
  byId("brand").href = overviewHref;
  byId("icon").href = new URL("icon.svg", import.meta.url);
  show(byId("legend"), legend());
  installThemeToggle(byId("theme"), () => {
    state.redraw = true;
    render();
  });
  installNavigation(() => {
    state.pod = null;
    state.redraw = true;
    show(page.pod);
    render();
    return refresh();
  });
  page.nodes.addEventListener("click", expand);
  page.more.addEventListener("click", loadOlder);
  byId("search").addEventListener("input", (event) => {
    state.search = event.target.value.trim();
    refresh();
  });
  const hideWaits = byId("hide-waits");
  // A browser may restore what was ticked before a reload.
  state.waits = !hideWaits.checked;
  hideWaits.addEventListener("change", () => {
    state.waits = !hideWaits.checked;
    state.decisions = [];
    state.newest = null;
    refresh();
  });
  document.addEventListener("visibilitychange", refresh);
  follow({ onChange: refresh, onLost: () => setConnection(true), onLive: () => { setConnection(false); refresh(); } });
}

install();
refresh();
