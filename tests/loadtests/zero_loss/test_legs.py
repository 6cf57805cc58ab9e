"""Rounds of moves within stretches of load, on a virtual clock."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from loadtests.workloads.load_tools import LoadResult, LoadToolError
from loadtests.zero_loss.moving import Landed
from loadtests.zero_loss.results import Lane, Leg
from loadtests.zero_loss.run import LANES, LEG_SECONDS, Legs
from reactor.errors import RematchError
from tests.support.clock import VirtualClock

MINUTE = 60.0
RESULT = LoadResult([], 0.0, 0.0, 0.0)


@dataclass
class Script:
    """A mover of two apps; each round takes a minute and moves one pod of each app, or none."""

    clock: VirtualClock
    stuck: bool = False
    broken_legs: int = 0
    rounds: list[tuple[float, dict[str, int]]] = field(default_factory=list)
    loads: list[tuple[float, float]] = field(default_factory=list)
    """Begin and end, of the first lane."""
    legs: list[Leg] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    async def round(self, wanted: Mapping[str, int]) -> list[Landed]:
        self.rounds.append((self.clock.now(), dict(wanted)))
        await self.clock.sleep(MINUTE)
        now = self.clock.now()
        return [] if self.stuck else [Landed(app, "a", "b", "b", "evict", 0.0, 0.0, None, now) for app in wanted]

    async def attack(self, lane: Lane, seconds: float) -> LoadResult:
        if lane == LANES[0]:
            self.loads.append((self.clock.now(), self.clock.now() + seconds))
        await self.clock.sleep(seconds)
        if len(self.loads) <= self.broken_legs:
            raise LoadToolError("k6 ran out of virtual users")
        return RESULT

    async def run(self, wanted: Mapping[str, int]) -> None:
        legs = Legs(self, self.attack, self.clock, self.legs.append, lambda text: None, dict.fromkeys(wanted, 1))
        task = asyncio.ensure_future(legs.run(wanted))
        while not task.done():
            await self.clock.advance(10.0)
        await task


async def test_every_app_gets_its_moves_and_every_round_runs_under_load() -> None:
    script = Script(VirtualClock())
    await script.run({"one": 5, "two": 10, "none": 0})

    assert sum(move.app == "one" for leg in script.legs for move in leg.landed) == 5
    assert sum(move.app == "two" for leg in script.legs for move in leg.landed) == 10
    assert len(script.rounds) == 10
    for began, _ in script.rounds:
        assert any(start < began and began + MINUTE <= end for start, end in script.loads)
    assert all(end - start <= LEG_SECONDS for start, end in script.loads)


async def test_a_leg_without_results_does_not_count() -> None:
    script = Script(VirtualClock(), broken_legs=1)
    await script.run({"one": 5})

    assert sum(len(leg.landed) for leg in script.legs) == 5
    assert len(script.rounds) > 5


async def test_a_way_without_moves_is_given_up() -> None:
    with pytest.raises(RematchError, match="no pod could be moved"):
        await Script(VirtualClock(), stuck=True).run({"one": 1})
