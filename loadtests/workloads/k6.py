"""k6 with one script for both kinds of load: fixed URLs at one rate, and the demo's Ready pods at rising rates."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from loadtests.tools.processes import CommandFailed, run
from loadtests.workloads.load_generator import AppLoad, LoadPlan
from loadtests.workloads.load_tools import SPARE_SECONDS, FallingLoad, Load, LoadResult, LoadToolError, lateness_ms
from loadtests.workloads.samples import LoadSummary, RequestOutcome, RequestSample, summarise

Json = dict[str, Any]
SCRIPT = Path(__file__).parent / "scripts" / "load.js"
_METRIC = "lab_request"
_DROPPED = "dropped_iterations"
_RAMP_MS = 1


class _Tags(msgspec.Struct):
    app: str = ""
    outcome: str = ""


class _Point(msgspec.Struct):
    time: datetime
    value: float
    tags: _Tags | None = None


class _Line(msgspec.Struct):
    """A line of k6's JSON output."""

    type: str
    metric: str
    data: msgspec.Raw


@dataclass(frozen=True, slots=True)
class PodSource:
    """Where the script finds the pods; the server is on loopback, as the pods are."""

    api_url: str
    namespace: str
    port: int


@dataclass(frozen=True, slots=True)
class K6:
    program: Path
    prefix: tuple[str, ...] = ()
    """What the command is run under, such as nsenter into a network namespace."""

    @property
    def name(self) -> str:
        return "k6"

    async def attack(self, load: Load) -> LoadResult:
        return parse_results(await self._run(script_input(load), load.deadline), load)

    async def fall(self, load: FallingLoad) -> list[RequestSample]:
        """Their starts are seconds since the epoch. Requests for which k6 had no virtual user left are missing."""
        text = await self._run(falling_input(load), load.deadline)
        return await asyncio.to_thread(parse_samples, text, load.urls, load.timeout, may_drop=True)

    async def follow_pods(self, plan: LoadPlan, pods: PodSource) -> LoadSummary:
        """The plan's load on the pods that are Ready at the time of each request. Dropped requests do not count."""
        text = await self._run(pods_input(plan, pods), plan.duration + plan.timeout + SPARE_SECONDS)
        return summarise(parse_samples(text, {load.app for load in plan.apps}, plan.timeout, may_drop=True))

    async def _run(self, given: Json, deadline: float) -> str:
        """k6's results, one JSON object per line; cancelling this ends the program."""
        with tempfile.TemporaryDirectory(prefix="rematch-k6-") as folder:
            results = Path(folder, "results.json")
            options = ("--quiet", "--no-usage-report", "--address=", f"--out=json={results}")
            command = [str(self.program), "run", *options, "-e", f"LOAD={json.dumps(given)}", str(SCRIPT)]
            try:
                output = await run([*self.prefix, *command], deadline=deadline, env={"K6_SUMMARY_MODE": "disabled"})
            except CommandFailed as error:
                raise LoadToolError(f"k6: {error}") from error
            try:
                return await asyncio.to_thread(results.read_text, encoding="utf-8")
            except OSError as error:
                raise LoadToolError(f"k6 wrote no results: {output[-500:]}") from error


def script_input(load: Load) -> Json:
    """k6 counts whole requests, so rates are given per 1000 s."""
    scenario = {
        "executor": "constant-arrival-rate",
        "rate": _per_1000_seconds(load),
        "timeUnit": "1000s",
        "duration": f"{round(load.seconds * 1000)}ms",
        **_users(load.rate, load.timeout),
    }
    scenarios = {app: {**scenario, "env": {"APP": app}} for app in load.urls}
    return {
        "scenarios": scenarios,
        "urls": dict(load.urls),
        "timeoutMs": round(load.timeout * 1000),
        "keepAlive": load.keep_alive,
    }


def falling_input(load: FallingLoad) -> Json:
    scenario = {
        "executor": "ramping-arrival-rate",
        "startRate": round(load.top * 60),
        "timeUnit": "1m",
        "stages": [{"target": 0, "duration": f"{round(load.seconds * 1000)}ms"}],
        **_users(load.top, load.timeout),
    }
    return {
        "scenarios": {app: {**scenario, "env": {"APP": app}} for app in load.urls},
        "urls": dict(load.urls),
        "timeoutMs": round(load.timeout * 1000),
        "keepAlive": False,
    }


def pods_input(plan: LoadPlan, pods: PodSource) -> Json:
    listing = f"{pods.api_url}/api/v1/namespaces/{pods.namespace}/pods"
    return {
        "scenarios": {load.app: _rising(load, plan) for load in plan.apps},
        "pods": {"list": listing, "port": pods.port, "path": plan.path},
        "timeoutMs": round(plan.timeout * 1000),
    }


def parse_results(text: str, load: Load) -> LoadResult:
    samples = parse_samples(text, load.urls, load.timeout)
    unsent = load.unsent(len(samples), len(load.urls))
    began = min(sample.start for sample in samples)
    samples = [sample._replace(start=sample.start - began) for sample in samples]
    return LoadResult(samples, began, _lateness_ms(samples, load), unsent)


def parse_samples(text: str, apps: Collection[str], timeout: float, *, may_drop: bool = False) -> list[RequestSample]:
    """Their starts are seconds since the epoch.

    k6 never sends the requests that it drops for want of virtual users: then a rate was not kept.
    """
    try:
        return list(_samples(text, apps, timeout, may_drop=may_drop))
    except (msgspec.DecodeError, ValueError) as error:
        raise LoadToolError(f"k6's results are not as expected: {error}") from error


def _rising(load: AppLoad, plan: LoadPlan) -> Json:
    """Steps become jumps of the arrival rate, in requests per minute."""
    per_minute = [round(step.rate * 60) for step in load.steps]
    ends = [*(step.start for step in load.steps[1:]), plan.duration]
    stages: list[Json] = []
    for step, rate, end in zip(load.steps, per_minute, ends, strict=True):
        stages.append({"target": rate, "duration": f"{_RAMP_MS}ms"})
        stages.append({"target": rate, "duration": f"{max(round((end - step.start) * 1000) - _RAMP_MS, 1)}ms"})
    return {
        "executor": "ramping-arrival-rate",
        "startRate": per_minute[0],
        "timeUnit": "1m",
        "stages": stages,
        "env": {"APP": load.app},
        **_users(max(step.rate for step in load.steps), plan.timeout),
    }


def _users(rate: float, timeout: float) -> Json:
    """Enough virtual users for the case that every request runs into its timeout."""
    users = max(4, round(rate * timeout) + 2)
    return {
        "preAllocatedVUs": users,
        "maxVUs": users * 2,
        "gracefulStop": f"{round(timeout * 1000) + 500}ms",
    }


def _per_1000_seconds(load: Load) -> int:
    return round(load.rate * 1000)


def _lateness_ms(samples: Sequence[RequestSample], load: Load) -> float:
    """Every app is a scenario, hence a sequence, of its own; all begin at once."""
    sequences = [sorted(sample.start for sample in samples if sample.app == app) for app in load.urls]
    return lateness_ms(sequences, 1000 / _per_1000_seconds(load))


def _samples(text: str, apps: Collection[str], timeout: float, *, may_drop: bool) -> Iterator[RequestSample]:
    for line in text.splitlines():
        entry = msgspec.json.decode(line, type=_Line)
        if entry.type == "Point" and entry.metric == _DROPPED and not may_drop:
            raise LoadToolError("k6 ran out of virtual users and dropped requests")
        if entry.type != "Point" or entry.metric != _METRIC:
            continue
        point = msgspec.json.decode(entry.data, type=_Point)
        tags = point.tags or _Tags()
        if tags.app not in apps:
            raise LoadToolError(f"k6 sent requests to app {tags.app!r}, which is no target")
        outcome = RequestOutcome(tags.outcome)
        latency = point.value / 1000 if outcome is RequestOutcome.OK else timeout
        yield RequestSample(tags.app, point.time.timestamp() - point.value / 1000, latency, outcome)
