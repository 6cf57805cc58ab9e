"""What became of the requests to each app, by the way its pods were moved."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from itertools import pairwise

import msgspec

from loadtests.workloads.load_tools import LoadResult
from loadtests.workloads.samples import RequestOutcome
from loadtests.zero_loss.design import MovedApp
from loadtests.zero_loss.routes import EmptyServices


@dataclass(frozen=True, slots=True)
class Landed:
    """One move: where the pod was, where it was to go, and where its replacement is."""

    app: str
    source: str
    target: str
    """Empty where nobody planned one."""
    node: str
    seconds: float
    strategy: str


@dataclass(frozen=True, slots=True)
class Lane:
    """One load tool with one kind of connections."""

    tool: str
    keep_alive: bool

    @property
    def name(self) -> str:
        return f"{self.tool}, {'kept' if self.keep_alive else 'new'} connections"


@dataclass(frozen=True, slots=True)
class Row:
    """One app, moved in one way."""

    way: str
    app: str
    ending: str
    replicas: int
    strategies: str
    """That were used, with the number of moves by each."""
    moves: int
    as_planned: int
    elsewhere: int
    back: int
    """Replacements on the node that the pod had left."""
    requests: int
    refused: int
    reset: int
    no_endpoint: int
    timeout: int
    error_status: int
    longest_gap_ms: float
    """Longest time between two requests that succeeded, over all tools together."""
    seconds_per_move: float

    @property
    def lost(self) -> int:
        """To moves: what a request gets when its pod is gone."""
        return self.refused + self.reset + self.no_endpoint

    @property
    def failed(self) -> int:
        return self.lost + self.timeout + self.error_status


@dataclass(frozen=True, slots=True)
class Failed:
    """A request that failed, with what is needed to draw it."""

    way: str
    app: str
    lane: str
    at: float
    """Seconds since the epoch."""
    outcome: str


@dataclass(frozen=True, slots=True)
class Leg:
    """One stretch of load without a break; every lane's results."""

    results: tuple[tuple[Lane, LoadResult], ...]


def row(
    way: str, moved: MovedApp, legs: Sequence[Leg], landed: Iterable[Landed], empty: EmptyServices
) -> tuple[Row, list[Failed]]:
    """The row of one app, and its failed requests."""
    app = moved.app.name
    moves = [move for move in landed if move.app == app]
    failed = _failed(way, app, legs, empty)
    counts = {outcome: sum(each.outcome == outcome for each in failed) for outcome in {each.outcome for each in failed}}
    used = {move.strategy for move in moves}
    made = Row(
        way=way,
        app=app,
        ending=moved.ending,
        replicas=moved.app.replicas,
        strategies=", ".join(f"{name} {sum(move.strategy == name for move in moves)}" for name in sorted(used)),
        moves=len(moves),
        as_planned=sum(move.node == move.target for move in moves),
        elsewhere=sum(move.node not in (move.target, move.source) for move in moves),
        back=sum(move.node == move.source for move in moves),
        requests=sum(sample.app == app for leg in legs for _, result in leg.results for sample in result.samples),
        refused=counts.get("refused", 0),
        reset=counts.get("reset", 0),
        no_endpoint=counts.get("noEndpoint", 0),
        timeout=counts.get("timeout", 0),
        error_status=counts.get("errorStatus", 0),
        longest_gap_ms=round(max((_longest_gap(leg, app) for leg in legs), default=0.0) * 1000),
        seconds_per_move=round(sum(move.seconds for move in moves) / max(1, len(moves)), 1),
    )
    return made, failed


def _failed(way: str, app: str, legs: Iterable[Leg], empty: EmptyServices) -> list[Failed]:
    found = []
    for leg in legs:
        for lane, result in leg.results:
            for sample in result.samples:
                if sample.app == app and sample.outcome is not RequestOutcome.OK:
                    at = result.began + sample.start
                    found.append(Failed(way, app, lane.name, at, _outcome(sample.outcome, app, at, empty)))
    return found


def _outcome(outcome: RequestOutcome, app: str, at: float, empty: EmptyServices) -> str:
    if outcome is RequestOutcome.REFUSED:
        return "noEndpoint" if empty.was_empty(app, at) else "refused"
    return "reset" if outcome is RequestOutcome.CLOSED else outcome.value


def _longest_gap(leg: Leg, app: str) -> float:
    """Between the ends of one request that succeeded and of the next."""
    ends = sorted(
        result.began + sample.start + sample.latency
        for _, result in leg.results
        for sample in result.samples
        if sample.app == app and sample.outcome is RequestOutcome.OK
    )
    return max((after - before for before, after in pairwise(ends)), default=0.0)


def as_csv(rows: Sequence[Row]) -> str:
    text = io.StringIO()
    names = [field.name for field in fields(Row)]
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    for each in rows:
        writer.writerow([getattr(each, name) for name in names])
    return text.getvalue()


def as_json(rows: Sequence[Row]) -> bytes:
    return msgspec.json.format(msgspec.json.encode(list(rows)), indent=1) + b"\n"
