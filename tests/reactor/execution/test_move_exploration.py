"""Every course of a move: each call with each fault, each crash and takeover, and what others do in mid-move.

The exploration is complete within its budgets: on the way from the start to the end at most `FAULTS` calls go wrong or
end the process, and others interfere once. Courses that meet in one state go on as one.
"""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any
from unittest.mock import Mock

import pytest

from matching.problem import Strategy
from reactor.cluster.surge_writes import Answer
from reactor.cluster.writes import Eviction
from reactor.execution.executor import Executor
from reactor.execution.journal import JournalError
from reactor.execution.move_states import CALLS, EFFECTS, NEXT, STATE_AFTER_EVICTION, TABLE
from reactor.settings.model import Settings
from reactor.state.moves import ANNOUNCING, IN_FLIGHT, Call, Move, MoveState
from reactor.state.snapshot import Needs, Snapshot
from reactor.state.steering import SteeringStatus
from tests.reactor.execution.modelled_cluster import (
    WANTED,
    Crash,
    Fault,
    Happening,
    ModelCluster,
    World,
    arrived,
    controlled,
    first_world,
    happen,
    view_of,
)
from tests.support.clock import NOW
from tests.support.cluster import make_eligibility, make_settings, make_usage
from tests.support.moves import make_plan, plan_move

MAX_JOURNAL_WRITES = 6
_MEMORY = ("_moves", "_pods", "_siblings", "_announced", "_repeated", "_finished", "_starting", "_forgotten")
_DISRUPTIVE = {
    Happening.SCALED_DOWN,
    Happening.OLD_DELETED,
    Happening.NEW_DELETED,
    Happening.OWNER_DELETED,
}
"""Others take pods away themselves."""


STEERED = SteeringStatus(policy_works=True, problem="", tried=True)


@pytest.fixture(autouse=True)
def _quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Most of the time would go into tens of thousands of log lines."""
    monkeypatch.setattr("reactor.execution.executor.log", Mock())


def settings_for(strategy: Strategy) -> Settings:
    execution = {"strategies": [strategy], "drainDelay": 0, "evictSingleReplicas": True}
    return make_settings(mode="act", managed={"anySchedulerNamespaces": ["*"]}, execution=execution)


@dataclass(frozen=True)
class Course:
    """A state of the world, of the process and of the journal, and how it came about."""

    world: World
    memory: dict[str, Any] | None
    """What the process knows; None after a crash."""
    entries: tuple[Move, ...] = ()
    faults: int = 0
    writes: int = 0
    path: tuple[str, ...] = field(default=(), compare=False)

    @property
    def key(self) -> tuple[object, ...]:
        known: tuple[object, ...] = ()
        if self.memory is not None:
            known = (
                tuple(self.memory["_moves"].values()),
                frozenset(self.memory["_announced"].items()),
                frozenset(self.memory["_repeated"]),
                frozenset(self.memory["_finished"]),
                self.memory["_forgotten"],
            )
        return (self.world, self.memory is None, known, self.entries, self.faults, self.writes)

    @property
    def ended(self) -> bool:
        if self.memory is None and self.world.happened is Happening.FORGOTTEN:
            return False  # the next process finds what is left
        busy = self.memory is not None and (self.memory["_moves"] or self.memory["_finished"])
        return not busy and not self.entries and not self.world.marked and controlled(self.world) == self.world


class Exploration:
    def __init__(self, strategy: Strategy) -> None:
        self.strategy = strategy
        self.settings = settings_for(strategy)
        self.usage = make_usage(view_of(first_world()), {}, {}, now=NOW)
        self.runs = 0
        self.ends = 0
        self.states: set[MoveState] = set()
        self.calls: set[str] = set()

    async def explore(self, faults: int, happenings: tuple[Happening, ...] = ()) -> None:
        start = await self._start(faults)
        waiting, known = [start], {start.key}
        while waiting:
            course = waiting.pop()
            if course.ended:
                self._check_end(course)
                following = list(_arrivals(course))
            else:
                following = [after async for after in self._branches(course, happenings)]
            for after in following:
                if after.key not in known:
                    known.add(after.key)
                    waiting.append(after)

    async def _branches(self, course: Course, happenings: tuple[Happening, ...]) -> AsyncIterator[Course]:
        after, calls = await self._run(course)
        yield after
        for late in _arrivals(course):
            yield late
        if course.faults:
            for number in range(calls):
                for fault in Fault:
                    spoiled, _ = await self._run(course, number, fault)
                    yield replace(spoiled, faults=course.faults - 1)
        if course.world.happened is None:
            for happening in happenings:
                world = happen(course.world, happening).after(course.world)
                after = replace(course, world=world, path=(*course.path, happening.value))
                forgotten = happening is Happening.FORGOTTEN
                yield replace(after, entries=(), memory=None) if forgotten else after

    async def _start(self, faults: int) -> Course:
        cluster = ModelCluster(first_world())
        executor = self._executor(cluster, None)
        view = view_of(cluster.world)
        snapshot = Snapshot(NOW, view, self.usage, {}, executor.active_moves(), Needs.REQUESTS, STEERED)
        plan = make_plan(replace(plan_move(view.pods["pod-0"], "n2"), strategy=self.strategy))
        executor.adopt(plan, "plan", snapshot)
        return Course(cluster.world, _memory_of(executor), faults=faults)

    async def _run(self, course: Course, number: int = -1, fault: Fault | None = None) -> tuple[Course, int]:
        """One pass of the controllers and one cycle of ours, whose call `number` meets the fault."""
        self.runs += 1
        cluster = ModelCluster(course.world, {move.id: move for move in course.entries}, least=WANTED)
        calls = 0

        def spoil() -> Fault | None:
            nonlocal calls
            calls += 1
            return fault if calls - 1 == number else None

        cluster.change(controlled(course.world))
        before = cluster.world
        cluster.fault = spoil
        executor = self._executor(cluster, course.memory)
        memory: dict[str, Any] | None = None
        try:
            if course.memory is None:
                await executor.resume((await cluster.load()).moves)
            await self._cycle(executor, cluster)
            memory = _memory_of(executor)
        except* Crash:
            pass
        self._check_cycle(course, cluster, fault)
        world = cluster.world
        known = None if memory is None or course.memory is None else (memory["_moves"], course.memory["_moves"])
        if world == before == course.world and number < 0 and known is not None and known[0] == known[1]:
            world = replace(world, now=world.now + 60)
            assert world.now < NOW + 6000, f"it never ends: {course.path}"
        path = course.path if fault is None else (*course.path, f"{fault.value} ({number})")
        entries = tuple(cluster.entries.values())
        writes = course.writes + cluster.journal_writes
        return Course(world, memory, entries, course.faults, writes, path), calls

    def _executor(self, cluster: ModelCluster, memory: dict[str, Any] | None) -> Executor:
        executor = Executor(cluster.writer, dict, cluster, cluster)
        if memory is not None:
            vars(executor).update({name: copy.copy(value) for name, value in memory.items()})
        return executor

    async def _cycle(self, executor: Executor, cluster: ModelCluster) -> None:
        world = cluster.world
        view, acts = view_of(world), not world.hindered(Happening.STOPPED)
        changed: list[Move] = executor.follow(view, world.now, self.settings)
        await executor.proceed(view, world.now, self.settings, changed.append, stopping=not acts)
        if not acts:
            changed += await executor.stop(world.now, "stopped")
        elif any(move.state is MoveState.PLANNED for move in executor.active_moves().moves):
            snapshot = Snapshot(world.now, view, self.usage, {}, executor.active_moves(), Needs.REQUESTS, STEERED)
            await executor.start(make_eligibility(snapshot, self.settings), changed.append)
        with suppress(JournalError):
            await executor.take_back_forgotten(view, world.now)
        self.states.update(move.state for move in (*changed, *cluster.entries.values()))
        await executor.forget_finished()

    def _check_cycle(self, course: Course, cluster: ModelCluster, fault: Fault | None) -> None:
        if cluster.world.happened in _DISRUPTIVE:
            return
        promised = WANTED - (self.strategy is Strategy.EVICT)
        assert cluster.least >= promised, (course.path, fault, cluster.world)

    def _check_end(self, course: Course) -> None:
        self.ends += 1
        world, where = course.world, (course.path, course.world)
        assert world.hint is None, where
        assert course.writes <= MAX_JOURNAL_WRITES, where
        assert world.scale_downs <= world.scale_ups <= 2, where
        assert world.evictions <= 1, where
        if not world.exists:
            assert world.pods == (), where
            return
        assert world.replicas == len(world.pods) == world.wanted, where
        assert all(pod.owner and pod.ready and not pod.cost and not pod.deleting for pod in world.pods), where
        if world.happened is not Happening.ON_SOURCE:
            assert world.scale_ups <= 1, where


def _arrivals(course: Course) -> Iterator[Course]:
    if course.world.late is not None:
        yield replace(course, world=arrived(course.world), path=(*course.path, "the late request arrives"))


def _memory_of(executor: Executor) -> dict[str, Any]:
    return {name: copy.copy(vars(executor)[name]) for name in _MEMORY}


@pytest.mark.parametrize("strategy", list(Strategy))
async def test_with_any_two_faults_nothing_is_left_behind(strategy: Strategy) -> None:
    exploration = Exploration(strategy)
    await exploration.explore(faults=2)

    assert exploration.ends > 5
    assert exploration.states >= _states_of(strategy)


@pytest.mark.parametrize("strategy", list(Strategy))
async def test_whatever_others_do_with_any_fault_nothing_is_left_behind(strategy: Strategy) -> None:
    exploration = Exploration(strategy)
    await exploration.explore(faults=1, happenings=tuple(Happening))

    assert exploration.ends > len(Happening)
    assert exploration.states >= _states_of(strategy)


def _states_of(strategy: Strategy) -> set[MoveState]:
    if strategy is Strategy.EVICT:
        return {MoveState.EVICTING, MoveState.EVICTED, MoveState.DONE}
    return {MoveState.SURGING, MoveState.SURGED, MoveState.RETIRING, MoveState.RETIRED, MoveState.DONE}


def _announced() -> Iterator[tuple[Strategy, MoveState]]:
    yield Strategy.EVICT, MoveState.EVICTING
    for strategy in (Strategy.SCALE_SURGE, Strategy.RELEASE_SURGE):
        for state in (MoveState.SURGING, MoveState.RETIRING, MoveState.UNDOING):
            yield strategy, state


def test_the_table_is_complete() -> None:
    assert set(TABLE) == IN_FLIGHT
    assert set(NEXT) == ANNOUNCING
    assert set(CALLS) == set(_announced())
    assert set(EFFECTS) == set(Call) - {Call.EVICT}
    assert all(set(answers) == set(Answer) for answers in EFFECTS.values())
    assert set(STATE_AFTER_EVICTION) == set(Eviction)
