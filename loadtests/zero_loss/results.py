"""What became of the requests to each app, by the way its pods were moved."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from itertools import pairwise

import msgspec

from loadtests.workloads.load_tools import LoadResult
from loadtests.workloads.samples import RequestOutcome
from loadtests.zero_loss.design import MovedApp
from loadtests.zero_loss.moving import Landed
from loadtests.zero_loss.routes import EmptyServices


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
    strategies: dict[str, int]
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
    late_ms: float
    """How much later than due a load tool sent its requests, on average: its own want of CPU. The worst tool's."""
    move_seconds: float
    """Of all moves together."""
    slowest_move: float

    @property
    def lost(self) -> int:
        """To moves: what a request gets when its pod is gone."""
        return self.refused + self.reset + self.no_endpoint

    @property
    def failed(self) -> int:
        return self.lost + self.timeout + self.error_status


_SUMS = (
    *("moves", "as_planned", "elsewhere", "back", "requests"),
    *("refused", "reset", "no_endpoint", "timeout", "error_status", "move_seconds"),
)
_MAXIMA = ("longest_gap_ms", "late_ms", "slowest_move")


def added(first: Row, second: Row) -> Row:
    """Of the same app, moved in the same way."""
    return replace(
        first,
        strategies=dict(Counter(first.strategies) + Counter(second.strategies)),
        **{name: getattr(first, name) + getattr(second, name) for name in _SUMS},
        **{name: max(getattr(first, name), getattr(second, name)) for name in _MAXIMA},
    )


@dataclass(frozen=True, slots=True)
class Failed:
    """A request that failed, with what is needed to find out why."""

    way: str
    app: str
    lane: str
    at: float
    """Seconds since the epoch."""
    outcome: str


@dataclass(frozen=True, slots=True)
class Leg:
    """One stretch of load without a break: every lane's results, and the moves meanwhile."""

    results: tuple[tuple[Lane, LoadResult], ...]
    landed: tuple[Landed, ...]


def row(way: str, moved: MovedApp, leg: Leg, failed: Sequence[Failed]) -> Row:
    """The row of one app. `failed` are its failed requests."""
    app = moved.app.name
    moves = [move for move in leg.landed if move.app == app]
    counts = Counter(each.outcome for each in failed)
    return Row(
        way=way,
        app=app,
        ending=moved.ending,
        replicas=moved.app.replicas,
        strategies=dict(Counter(move.strategy for move in moves)),
        moves=len(moves),
        as_planned=sum(move.node == move.target for move in moves),
        elsewhere=sum(move.node not in (move.target, move.source) for move in moves),
        back=sum(move.node == move.source for move in moves),
        requests=sum(sample.app == app for _, result in leg.results for sample in result.samples),
        refused=counts["refused"],
        reset=counts["reset"],
        no_endpoint=counts["noEndpoint"],
        timeout=counts["timeout"],
        error_status=counts["errorStatus"],
        longest_gap_ms=round(_longest_gap(leg, app) * 1000),
        late_ms=round(max((result.late_ms for _, result in leg.results), default=0.0)),
        move_seconds=round(sum(move.seconds for move in moves), 1),
        slowest_move=round(max((move.seconds for move in moves), default=0.0), 1),
    )


def failed_requests(way: str, app: str, leg: Leg, empty: EmptyServices) -> list[Failed]:
    return sorted(_failed(way, app, leg, empty), key=lambda each: each.at)


def _failed(way: str, app: str, leg: Leg, empty: EmptyServices) -> Iterator[Failed]:
    for lane, result in leg.results:
        for sample in result.samples:
            if sample.app == app and sample.outcome is not RequestOutcome.OK:
                at = result.began + sample.start
                yield Failed(way, app, lane.name, at, _outcome(sample.outcome, app, at, empty))


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


def strategies_text(row: Row) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(row.strategies.items()))


def as_csv(rows: Sequence[Row]) -> str:
    names = [field.name for field in fields(Row)]
    values = [
        [strategies_text(each) if name == "strategies" else getattr(each, name) for name in names] for each in rows
    ]
    return csv_text(names, values)


def csv_text(names: Sequence[str], values: Iterable[Sequence[object]]) -> str:
    """Without a heading where there are no names."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    if names:
        writer.writerow(names)
    writer.writerows(values)
    return text.getvalue()


def as_json(rows: Sequence[Row]) -> bytes:
    return msgspec.json.format(msgspec.json.encode(list(rows)), indent=1) + b"\n"
