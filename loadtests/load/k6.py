"""k6 with the script that this project ships: the same load, one constant-arrival-rate scenario per app."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import msgspec

from loadtests.load.load import Load, LoadResult, LoadToolError, lateness_ms
from loadtests.tools.commands import CommandFailed, run
from loadtests.workloads.load_summary import Outcome, Sample

SCRIPT = Path(__file__).parent / "scripts" / "steady.js"
_METRIC = "lab_request"
_DROPPED = "dropped_iterations"


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
class K6:
    program: Path
    prefix: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return "k6"

    async def attack(self, load: Load) -> LoadResult:
        with tempfile.TemporaryDirectory(prefix="rematch-k6-") as folder:
            results = Path(folder, "results.json")
            options = ("--quiet", "--no-usage-report", "--summary-mode=disabled", "--address=", f"--out=json={results}")
            command = [str(self.program), "run", *options, "-e", f"LOAD={plan_of(load)}", str(SCRIPT)]
            try:
                await run([*self.prefix, *command], deadline=load.deadline)
            except CommandFailed as error:
                raise LoadToolError(f"k6: {error}") from error
            return parse_results(await asyncio.to_thread(results.read_text, encoding="utf-8"), load)


def plan_of(load: Load) -> str:
    """What the script reads from its environment; k6 counts whole requests, so rates are given per 1000 s."""
    return json.dumps(
        {
            "urls": dict(load.urls),
            "per1000s": _per_1000_seconds(load),
            "milliseconds": round(load.seconds * 1000),
            "timeoutMs": round(load.timeout * 1000),
            "users": max(4, round(load.rate * load.timeout) + 2),
        }
    )


def parse_results(text: str, load: Load) -> LoadResult:
    """Requests that k6 dropped for want of virtual users were never sent: then its figures say nothing."""
    try:
        samples = list(_samples(text, load))
    except (msgspec.DecodeError, ValueError) as error:
        raise LoadToolError(f"k6's results are not as expected: {error}") from error
    unsent = load.unsent(len(samples), len(load.urls))
    began = min(sample.start for sample in samples)
    samples = [sample._replace(start=sample.start - began) for sample in samples]
    return LoadResult(samples, began, _lateness_ms(samples, load), unsent)


def _per_1000_seconds(load: Load) -> int:
    return round(load.rate * 1000)


def _lateness_ms(samples: Sequence[Sample], load: Load) -> float:
    """Every app is a scenario, hence a sequence, of its own; all begin at once."""
    sequences = [sorted(sample.start for sample in samples if sample.app == app) for app in load.urls]
    return lateness_ms(sequences, 1000 / _per_1000_seconds(load))


def _samples(text: str, load: Load) -> Iterator[Sample]:
    for line in text.splitlines():
        entry = msgspec.json.decode(line, type=_Line)
        if entry.type != "Point" or entry.metric not in (_METRIC, _DROPPED):
            continue
        point = msgspec.json.decode(entry.data, type=_Point)
        if entry.metric == _DROPPED:
            raise LoadToolError("k6 ran out of virtual users and dropped requests")
        tags = point.tags or _Tags()
        if tags.app not in load.urls:
            raise LoadToolError(f"k6 asked for app {tags.app!r}, which is no target")
        outcome = Outcome(tags.outcome)
        latency = point.value / 1000 if outcome is Outcome.OK else load.timeout
        yield Sample(tags.app, point.time.timestamp() - point.value / 1000, latency, outcome)
