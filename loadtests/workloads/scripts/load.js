// Loads all apps at once and reports each request by itself. What to do is JSON in the environment variable LOAD.
import http from 'k6/http';
import { Trend } from 'k6/metrics';

const load = JSON.parse(__ENV.LOAD || '{"scenarios":{},"urls":{},"timeoutMs":1000}');
const requests = new Trend('lab_request', true);
let target = null;
let lookedUp = 0;

export const options = {
  scenarios: load.scenarios,
  noConnectionReuse: !load.keepAlive,
  discardResponseBodies: true,
  systemTags: [],
};

// Without fixed URLs every virtual user looks up a Ready pod of its app once a second, because pods move.
function urlOf(app) {
  if (load.urls) return load.urls[app];
  if (Date.now() - lookedUp < 1000) return target;
  lookedUp = Date.now();
  target = null;
  const listed = http.get(`${load.pods.list}?labelSelector=app%3D${app}`, { responseType: 'text' }).json('items');
  for (const pod of listed || []) {
    const ready = (pod.status.conditions || []).some((c) => c.type === 'Ready' && c.status === 'True');
    const ip = pod.status.podIP || '';
    if (ready && !pod.metadata.deletionTimestamp && ip.startsWith('127.')) target = `http://${ip}:${load.pods.port}${load.pods.path}`;
  }
  return target;
}

// k6's codes: 1050 is its own timeout, 12xx are failures to connect, other codes below 1400 broken connections.
function outcome(answer) {
  if (answer.status >= 200 && answer.status < 400) return 'ok';
  if (answer.status > 0) return 'errorStatus';
  if (answer.error_code === 1050 || answer.error_code === 1211) return 'timeout';
  if (answer.error_code === 1212 || answer.error_code === 1210) return 'refused';
  return 'closed';
}

export default function () {
  const app = __ENV.APP;
  const url = urlOf(app);
  if (url === null) {
    requests.add(0, { app: app, outcome: 'noReadyPod' });
    return;
  }
  const began = Date.now();
  const answer = http.get(url, { timeout: load.timeoutMs });
  requests.add(Date.now() - began, { app: app, outcome: outcome(answer) });
}
