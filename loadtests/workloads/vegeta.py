"""Vegeta on all apps at once: one targets file, one constant rate, every result decoded."""

from __future__ import annotations

import asyncio
import tempfile
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import msgspec

from loadtests.tools.processes import CommandFailed, run
from loadtests.workloads.load_tools import Load, LoadResult, LoadToolError, lateness_ms
from loadtests.workloads.samples import RequestOutcome, RequestSample

_DECODE_SECONDS = 60.0
_ERRORS = (
    ("Client.Timeout", RequestOutcome.TIMEOUT),
    ("deadline exceeded", RequestOutcome.TIMEOUT),
    ("i/o timeout", RequestOutcome.TIMEOUT),
    ("connection refused", RequestOutcome.REFUSED),
    ("no route to host", RequestOutcome.REFUSED),
    ("EOF", RequestOutcome.CLOSED),
    ("reset by peer", RequestOutcome.CLOSED),
    ("server closed idle connection", RequestOutcome.CLOSED),
    ("broken pipe", RequestOutcome.CLOSED),
)


class _Hit(msgspec.Struct):
    """A line of `vegeta encode -to json`."""

    seq: int
    code: int
    timestamp: datetime
    latency: int
    """Nanoseconds."""
    error: str
    url: str


@dataclass(frozen=True, slots=True)
class Vegeta:
    program: Path
    prefix: tuple[str, ...] = ()
    """What the command is run under, such as nsenter into a network namespace."""

    @property
    def name(self) -> str:
        return "vegeta"

    async def attack(self, load: Load) -> LoadResult:
        with tempfile.TemporaryDirectory(prefix="rematch-vegeta-") as folder:
            targets, results = Path(folder, "targets"), Path(folder, "results.bin")
            await asyncio.to_thread(targets.write_text, targets_file(load), encoding="utf-8")
            try:
                await run([*self.prefix, *self._command(load, targets, results)], deadline=load.deadline)
                text = await run([str(self.program), "encode", "-to=json", str(results)], deadline=_DECODE_SECONDS)
            except CommandFailed as error:
                raise LoadToolError(f"vegeta: {error}") from error
        return parse_results(text, load)

    def _command(self, load: Load, targets: Path, results: Path) -> list[str]:
        """The rate as so many in 1000 s, since Vegeta takes whole numbers."""
        total = round(load.rate * len(load.urls) * 1000)
        return [
            *(str(self.program), "attack", f"-targets={targets}", f"-output={results}", f"-rate={total}/1000s"),
            *(f"-duration={load.seconds:g}s", f"-timeout={load.timeout:g}s", "-max-body=0"),
            f"-keepalive={str(load.keep_alive).lower()}",
        ]


def targets_file(load: Load) -> str:
    """Vegeta takes them in turn, so every app gets the same rate."""
    return "".join(f"GET {url}\n" for url in load.urls.values())


def parse_results(text: str, load: Load) -> LoadResult:
    """The samples are in the order of sending: one sequence for all apps."""
    apps = {url: app for app, url in load.urls.items()}
    try:
        hits = [msgspec.json.decode(line, type=_Hit) for line in text.splitlines()]
        named = [(apps[hit.url], hit) for hit in sorted(hits, key=lambda hit: hit.seq)]
    except msgspec.DecodeError as error:
        raise LoadToolError(f"vegeta's results are not as expected: {error}") from error
    except KeyError as error:
        raise LoadToolError(f"vegeta asked {error}, which is no target") from error
    unsent = load.unsent(len(hits), 1)
    began = min(hit.timestamp for hit in hits)
    samples = [_sample(app, hit, began, load.timeout) for app, hit in named]
    late_ms = lateness_ms([[sample.start for sample in samples]], 1 / (load.rate * len(load.urls)))
    return LoadResult(samples, began.timestamp(), late_ms, unsent)


def _sample(app: str, hit: _Hit, began: datetime, timeout: float) -> RequestSample:
    outcome = _outcome(hit)
    latency = hit.latency / 1e9 if outcome is RequestOutcome.OK else timeout
    return RequestSample(app, (hit.timestamp - began).total_seconds(), latency, outcome)


def _outcome(hit: _Hit) -> RequestOutcome:
    if 200 <= hit.code < 400:
        return RequestOutcome.OK
    if hit.code:
        return RequestOutcome.ERROR_STATUS
    for words, outcome in _ERRORS:
        if words in hit.error:
            return outcome
    raise LoadToolError(f"vegeta reports an error that is not known here: {hit.error}")
