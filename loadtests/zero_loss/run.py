"""One way of moving, under constant load from both tools, with new and with kept connections."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil

from loadtests.workloads.load_tools import LoadResult, LoadToolError
from loadtests.zero_loss.bench import Bench
from loadtests.zero_loss.design import MovedApp, Way
from loadtests.zero_loss.moving import Landed, Mover
from loadtests.zero_loss.results import Failed, Lane, Leg, Row, failed_requests, row
from reactor.clock import Clock
from reactor.errors import RematchError

LANES = (Lane("vegeta", False), Lane("vegeta", True), Lane("k6", False), Lane("k6", True))
LEG_SECONDS = 300.0
_FIRST_ROUND = 25.0
"""Seconds that a round is given before one was measured."""
_SHORTEST_ROUND = 5.0
_SPARE = 1.3
"""A round is given so many times what the one before took."""
_TOOL_START = 4.0
_PAUSE = 2.0
"""Before another attempt, where no pod could be moved: new pods are not measured yet."""
_MAX_FAILURES = 15
"""In a row, of rounds without a move and of legs without results."""

Tell = Callable[[str], None]
Attack = Callable[[Lane, float], Awaitable[LoadResult]]
"""With one lane for so many seconds."""


@dataclass(slots=True)
class Measured:
    """Of one leg, or of several."""

    rows: list[Row] = field(default_factory=list)
    failed: list[Failed] = field(default_factory=list)
    landed: list[tuple[str, Landed]] = field(default_factory=list)
    """Each with its way."""
    problems: list[str] = field(default_factory=list)


Record = Callable[[Measured], None]
"""Gets each leg as soon as it is measured, so that an interrupted run leaves what it has."""


def moves_left(apps: Sequence[MovedApp], moves: int, way: Way, rows: Sequence[Row]) -> dict[str, int]:
    """By app, after what the rows say was measured already."""
    done = {row.app: row.moves for row in rows if row.way == way}
    return {moved.app.name: moves * moved.app.replicas - done.get(moved.app.name, 0) for moved in apps}


async def measure(bench: Bench, way: Way, left: Mapping[str, int], rate: float, record: Record, tell: Tell) -> None:
    """So many moves of each app's pods; nothing where none is left."""
    if not any(count > 0 for count in left.values()):
        return
    mover = await bench.mover(way)
    async with bench.controller(way), bench.deployed():

        def attack(lane: Lane, seconds: float) -> Awaitable[LoadResult]:
            return bench.attack(lane, rate, seconds)

        def ended(leg: Leg) -> None:
            record(_measured(bench, way, leg, mover.problems))
            mover.problems.clear()

        replicas = {moved.app.name: moved.app.replicas for moved in bench.apps}
        await Legs(mover, attack, bench.clock, ended, lambda text: tell(f"{way}: {text}"), replicas).run(left)


def _measured(bench: Bench, way: Way, leg: Leg, problems: list[str]) -> Measured:
    measured = Measured(
        landed=[(way.value, each) for each in leg.landed], problems=[f"{way}: {each}" for each in problems]
    )
    for moved in bench.apps:
        failed = failed_requests(way.value, moved.app.name, leg, bench.empty)
        measured.rows.append(row(way.value, moved, leg, failed))
        measured.failed += failed
    return measured


@dataclass(slots=True)
class Legs:
    """Stretches of load, and rounds of moves in them. A round begins only where the load lasts longer than it."""

    mover: Mover
    attack: Attack
    clock: Clock
    ended: Callable[[Leg], None]
    tell: Tell
    per_round: Mapping[str, int]
    """How many pods of each app one round moves."""
    _needed: float = _FIRST_ROUND
    _failures: int = 0

    async def run(self, wanted: Mapping[str, int]) -> None:
        left = {app: count for app, count in wanted.items() if count > 0}
        while left:
            try:
                leg = await self._leg(left)
            except LoadToolError as error:
                self._fail(f"a leg does not count: {error}")
                continue
            self.ended(leg)
            for move in leg.landed:
                left[move.app] -= 1
            left = {app: count for app, count in left.items() if count > 0}

    async def _leg(self, left: Mapping[str, int]) -> Leg:
        rounds = max(ceil(count / self.per_round[app]) for app, count in left.items())
        seconds = min(LEG_SECONDS, rounds * self._needed + 2 * _TOOL_START)
        end = self.clock.monotonic() + seconds
        attacks = [asyncio.ensure_future(self.attack(lane, seconds)) for lane in LANES]
        try:
            await self.clock.sleep(_TOOL_START)
            landed = await self._rounds(dict(left), end)
            results = await asyncio.gather(*attacks)
        finally:
            for attack in attacks:
                attack.cancel()
            await asyncio.gather(*attacks, return_exceptions=True)
        return Leg(tuple(zip(LANES, results, strict=True)), tuple(landed))

    async def _rounds(self, left: dict[str, int], end: float) -> list[Landed]:
        landed: list[Landed] = []
        while left and self.clock.monotonic() + self._needed <= end:
            began = self.clock.monotonic()
            moved = await self.mover.round(left)
            for move in moved:
                left[move.app] -= 1
            left = {app: count for app, count in left.items() if count > 0}
            landed += moved
            if not moved:
                self._fail("no pod could be moved")
                await self.clock.sleep(_PAUSE)
                continue
            self._failures = 0
            took = self.clock.monotonic() - began
            self._needed = max(_SPARE * took, _SHORTEST_ROUND)
            self.tell(f"{len(moved)} moves in {took:.0f} s, {sum(left.values())} left")
        return landed

    def _fail(self, why: str) -> None:
        self._failures += 1
        self.tell(why)
        if self._failures >= _MAX_FAILURES:
            raise RematchError(f"given up after {self._failures} failures in a row, the last: {why}")
