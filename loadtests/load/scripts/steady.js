// All apps at once at one rate, each request reported by itself. What to do is in the environment variable LOAD.
import http from 'k6/http';
import { Trend } from 'k6/metrics';

const load = JSON.parse(__ENV.LOAD || '{"urls":{"app":"http://127.0.0.1:1/"},"per1000s":1,"milliseconds":1000,"timeoutMs":1000,"users":1}');
const requests = new Trend('lab_request', true);

function scenario(app) {
  return {
    executor: 'constant-arrival-rate',
    rate: load.per1000s,
    timeUnit: '1000s',
    duration: `${load.milliseconds}ms`,
    preAllocatedVUs: load.users,
    maxVUs: load.users * 2,
    gracefulStop: `${load.timeoutMs + 500}ms`,
    env: { APP: app },
  };
}

export const options = {
  scenarios: Object.fromEntries(Object.keys(load.urls).map((app) => [app, scenario(app)])),
  noConnectionReuse: true,
  discardResponseBodies: true,
  systemTags: [],
};

// k6's codes: 1050 is its own timeout, 12xx are failures to connect, other codes below 1400 broken connections.
function outcome(answer) {
  if (answer.status >= 200 && answer.status < 400) return 'ok';
  if (answer.status > 0) return 'errorStatus';
  if (answer.error_code === 1050 || answer.error_code === 1211) return 'timeout';
  if (answer.error_code === 1212 || answer.error_code === 1210) return 'refused';
  return 'closed';
}

export default function () {
  const began = Date.now();
  const answer = http.get(load.urls[__ENV.APP], { timeout: load.timeoutMs });
  requests.add(Date.now() - began, { app: __ENV.APP, outcome: outcome(answer) });
}
