// Requests to the controller, each with a deadline.

import { apiUrl, podPath } from "./links.js";

const DEADLINE_MS = 25_000;
export const PAGE_OF_DECISIONS = 30;

export class ApiError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

async function fetchJson(path, parameters) {
  const options = { headers: { Accept: "application/json" }, signal: AbortSignal.timeout(DEADLINE_MS) };
  const response = await fetch(apiUrl(path, parameters), options);
  if (response.ok) return response.json();
  const body = await response.json().catch(() => null);
  throw new ApiError(response.status, body?.error?.message ?? `the controller answered ${response.status}`);
}

export function fetchOverview({ search, expanded, nodes }) {
  const parameters = [["nodes", nodes], ...[...expanded].slice(0, 20).map((name) => ["expand", name])];
  if (search) parameters.push(["search", search]);
  return fetchJson("overview", parameters);
}

export async function fetchDecisions({ waits, before }) {
  const parameters = [["limit", PAGE_OF_DECISIONS], ["waits", waits]];
  if (before !== undefined) parameters.push(["before", before]);
  return (await fetchJson("decisions", parameters)).decisions;
}

export const fetchSeries = () => fetchJson("series");
export const fetchCalibration = () => fetchJson("calibration");

/** Null when there is no such pod. */
export const fetchPod = (namespace, name) => fetchIfThere(podPath(namespace, name));

/** Null when nothing is recorded of it. */
export const fetchUsage = (name) => fetchIfThere("usage", [["name", name]]);

async function fetchIfThere(path, parameters) {
  try {
    return await fetchJson(path, parameters);
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return null;
    throw error;
  }
}
