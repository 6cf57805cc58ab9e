"""Vegeta on all apps at once: one targets file, one constant rate, every result decoded."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import msgspec

from loadtests.tools.processes import CommandFailed, run
from loadtests.workloads.load_tools import ClosedLoad, Load, LoadResult, LoadToolError, lateness_ms
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
    connections: int = 0
    """The most at a time; 0: as many as the rate needs."""

    @property
    def name(self) -> str:
        return "vegeta"

    async def attack(self, load: Load, order: Sequence[str] = ()) -> LoadResult:
        """The rate as so many in 1000 s, since Vegeta takes whole numbers. `order`: the apps of the requests, over and
        over; without, all in turn."""
        total = round(load.rate * len(load.urls) * 1000)
        options = [f"-rate={total}/1000s", f"-keepalive={str(load.keep_alive).lower()}", *_at_most(self.connections)]
        return parse_results(await self._run(load, options, order), load)

    async def attack_closed(self, load: ClosedLoad) -> list[RequestSample]:
        """With kept connections, one per user."""
        text = await self._run(load, ["-rate=0", "-keepalive=true", *_at_most(load.users)])
        return _samples(_hits(text, load.urls), load.timeout)[1]

    async def _run(self, load: Load | ClosedLoad, options: Sequence[str], order: Sequence[str] = ()) -> str:
        """The results, one JSON object per line; cancelling this ends the program."""
        with tempfile.TemporaryDirectory(prefix="rematch-vegeta-") as folder:
            targets, results = Path(folder, "targets"), Path(folder, "results.bin")
            await asyncio.to_thread(targets.write_text, targets_file(load, order), encoding="utf-8")
            try:
                command = [str(self.program), "attack", f"-targets={targets}", f"-output={results}"]
                limits = [f"-duration={load.seconds:g}s", f"-timeout={load.timeout:g}s", "-max-body=0"]
                await run([*self.prefix, *command, *limits, *options], deadline=load.deadline)
                return await run([str(self.program), "encode", "-to=json", str(results)], deadline=_DECODE_SECONDS)
            except CommandFailed as error:
                raise LoadToolError(f"vegeta: {error}") from error


def _at_most(connections: int) -> list[str]:
    return [f"-workers={connections}", f"-max-workers={connections}"] if connections else []


def targets_file(load: Load | ClosedLoad, order: Sequence[str] = ()) -> str:
    """Vegeta takes them in turn, so without an order every app gets the same rate."""
    return "".join(f"GET {load.urls[app]}\n" for app in order or load.urls)


def parse_results(text: str, load: Load) -> LoadResult:
    """The samples are in the order of sending: one sequence for all apps."""
    hits = _hits(text, load.urls)
    unsent = load.unsent(len(hits), 1)
    began, samples = _samples(hits, load.timeout)
    late_ms = lateness_ms([[sample.start for sample in samples]], 1 / (load.rate * len(load.urls)))
    return LoadResult(samples, began.timestamp(), late_ms, unsent)


def _hits(text: str, urls: Mapping[str, str]) -> list[tuple[str, _Hit]]:
    """Each with its app, in the order of sending."""
    apps = {url: app for app, url in urls.items()}
    try:
        hits = [msgspec.json.decode(line, type=_Hit) for line in text.splitlines()]
        return [(apps[hit.url], hit) for hit in sorted(hits, key=lambda hit: hit.seq)]
    except msgspec.DecodeError as error:
        raise LoadToolError(f"vegeta's results are not as expected: {error}") from error
    except KeyError as error:
        raise LoadToolError(f"vegeta asked {error}, which is no target") from error


def _samples(hits: Sequence[tuple[str, _Hit]], timeout: float) -> tuple[datetime, list[RequestSample]]:
    """Their starts count from the first, whose time it returns."""
    if not hits:
        raise LoadToolError("vegeta sent nothing")
    began = min(hit.timestamp for _, hit in hits)
    return began, [_sample(app, hit, began, timeout) for app, hit in hits]


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
