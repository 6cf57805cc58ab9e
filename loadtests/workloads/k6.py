"""The same load by k6, when it is on the PATH: a generated script, a bounded run, the same summary."""

from __future__ import annotations

import asyncio
import json
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loadtests.workloads.arrivals import AppLoad
from loadtests.workloads.load import LoadPlan
from loadtests.workloads.load_summary import LoadSummary
from reactor.errors import RematchError

_SPARE_SECONDS = 30.0
_RAMP_MS = 1
_SCRIPT = """\
import http from 'k6/http';
import { Rate, Trend } from 'k6/metrics';

const lab = %(lab)s;
const ok = new Rate('lab_ok');
const latency = new Trend('lab_latency_ms');
let target = null;
let asked = 0;

export const options = {
  scenarios: lab.scenarios,
  noConnectionReuse: true,
  discardResponseBodies: false,
  summaryTrendStats: ['p(50)', 'p(95)', 'p(99)'],
};

// Pods move: every virtual user looks up its app's Ready pod again once a second.
function ready(app) {
  if (Date.now() - asked < 1000) return target;
  asked = Date.now();
  const found = http.get(`${lab.pods}?labelSelector=${encodeURIComponent(lab.label + '=' + app)}`).json('items');
  target = null;
  for (const pod of found || []) {
    const fine = (pod.status.conditions || []).some((c) => c.type === 'Ready' && c.status === 'True');
    const ip = pod.status.podIP || '';
    if (fine && !pod.metadata.deletionTimestamp && ip.startsWith('127.')) target = `http://${ip}:${lab.port}${lab.path}`;
  }
  return target;
}

export default function () {
  const url = ready(__ENV.LAB_APP);
  const answer = url === null ? null : http.get(url, { timeout: `${lab.timeoutMs}ms` });
  const good = answer !== null && answer.status >= 200 && answer.status < 400;
  ok.add(good);
  latency.add(good ? answer.timings.duration : lab.timeoutMs);
}

export function handleSummary(data) {
  return { [lab.summary]: JSON.stringify(data.metrics) };
}
"""


class K6Error(RematchError):
    """k6 did not give a usable summary; the message carries its last words."""


@dataclass(frozen=True, slots=True)
class PodSource:
    """Where the script finds the pods; the server is on loopback, as the pods are."""

    api_url: str
    namespace: str
    label: str = "app"
    port: int = 8080


def find_k6() -> str | None:
    return shutil.which("k6")


def k6_script(plan: LoadPlan, pods: PodSource, summary: Path) -> str:
    lab = {
        "scenarios": {load.app: _scenario(load, plan) for load in plan.apps},
        "pods": f"{pods.api_url}/api/v1/namespaces/{pods.namespace}/pods",
        "label": pods.label,
        "port": pods.port,
        "path": plan.path,
        "timeoutMs": round(plan.timeout * 1000),
        "summary": str(summary),
    }
    return _SCRIPT % {"lab": json.dumps(lab, indent=2)}


def parse_k6_summary(metrics: dict[str, Any]) -> LoadSummary:
    """`metrics` is what the script's handleSummary writes."""
    try:
        counted, timed = metrics["lab_ok"]["values"], metrics["lab_latency_ms"]["values"]
        good, bad = int(counted["passes"]), int(counted["fails"])
        p50, p95, p99 = (float(timed[f"p({share})"]) for share in (50, 95, 99))
    except (KeyError, TypeError, ValueError) as error:
        raise K6Error(f"k6's summary lacks {error}; was the script changed?") from error
    if good + bad == 0:
        return LoadSummary(0, 0, None, None, None, None)
    return LoadSummary(good + bad, bad, good / (good + bad), p50, p95, p99)


async def run_k6(program: str, plan: LoadPlan, pods: PodSource) -> LoadSummary:
    """Bounded by the plan's duration; cancelling it ends the program."""
    with tempfile.TemporaryDirectory(prefix="rematch-k6-") as folder:
        script, summary = Path(folder, "load.js"), Path(folder, "summary.json")
        await asyncio.to_thread(script.write_text, k6_script(plan, pods, summary), encoding="utf-8")
        words = await _run(program, script, plan.duration + plan.timeout + _SPARE_SECONDS)
        return await asyncio.to_thread(_read_summary, summary, words)


def _read_summary(path: Path, words: str) -> LoadSummary:
    try:
        return parse_k6_summary(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, json.JSONDecodeError) as error:
        raise K6Error(f"k6 wrote no summary: {words[-500:]}") from error


async def _run(program: str, script: Path, deadline: float) -> str:
    process = await asyncio.create_subprocess_exec(
        program,
        "run",
        "--quiet",
        "--no-usage-report",
        "--address=",
        str(script),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        output, _ = await asyncio.wait_for(process.communicate(), deadline)
    except TimeoutError as error:
        raise K6Error(f"k6 did not end within {deadline:.0f} s") from error
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return output.decode(errors="replace")


def _scenario(load: AppLoad, plan: LoadPlan) -> dict[str, Any]:
    """Steps become jumps of the arrival rate; k6 counts whole requests, so rates are given per minute."""
    per_minute = [round(step.rate * 60) for step in load.steps]
    ends = [*(step.start for step in load.steps[1:]), plan.duration]
    stages: list[dict[str, Any]] = []
    for step, rate, end in zip(load.steps, per_minute, ends, strict=True):
        stages.append({"target": rate, "duration": f"{_RAMP_MS}ms"})
        stages.append({"target": rate, "duration": f"{max(round((end - step.start) * 1000) - _RAMP_MS, 1)}ms"})
    most = max(step.rate for step in load.steps)
    return {
        "executor": "ramping-arrival-rate",
        "startRate": per_minute[0],
        "timeUnit": "1m",
        "stages": stages,
        "preAllocatedVUs": max(round(most), 2),
        "maxVUs": max(round(most * plan.timeout * 2), 4),
        "gracefulStop": f"{round(plan.timeout * 1000)}ms",
        "env": {"LAB_APP": load.app},
    }
