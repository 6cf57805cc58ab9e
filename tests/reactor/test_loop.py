"""When a cycle is due."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from matching.problem import ProblemError
from reactor.cycle import CycleParts
from reactor.decision.decide import Decision, Trigger, Wait
from reactor.decision.wait_reasons import Reason
from reactor.execution.cycle_outcome import Outcome
from reactor.loop import SHORTEST_PAUSE
from reactor.state.moves import Move
from tests.support.clock import NOW, eventually
from tests.support.cluster import make_node, make_pod, make_settings
from tests.support.moves import make_move
from tests.support.rig import Rig


class Cycles:
    """Stands in for `run_cycle`: notes when and why, and returns what the test sets."""

    def __init__(self, rig: Rig) -> None:
        self._rig = rig
        self.seen: list[tuple[float, Trigger]] = []
        self.until: float | None = None
        self.moves: tuple[Move, ...] = ()
        self.failure: Exception | None = None

    async def __call__(self, parts: CycleParts, trigger: Trigger) -> Outcome:
        self.seen.append((self._rig.clock.now() - NOW, trigger))
        if self.failure is not None:
            raise self.failure
        waits = () if self.until is None else (Wait("u", "shop/web-1", Reason.COOLDOWN, "", self.until),)
        return Outcome(Decision(self._rig.clock.now(), trigger, waits=waits), executed=self.moves)

    @property
    def times(self) -> list[float]:
        return [round(at, 2) for at, _ in self.seen]


@pytest.fixture
def rig() -> Rig:
    return Rig(make_settings(triggers={"evaluation_interval": 10}))


@pytest.fixture
def cycles(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> Cycles:
    cycles = Cycles(rig)
    monkeypatch.setattr("reactor.loop.run_cycle", cycles)
    return cycles


@asynccontextmanager
async def running(rig: Rig) -> AsyncIterator[asyncio.Task[None]]:
    task = asyncio.create_task(rig.loop.run())
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def first_cycle(rig: Rig, cycles: Cycles) -> None:
    """The first list starts one; from here the time of the test counts."""
    await rig.clock.advance(0.03)
    assert len(cycles.seen) == 1
    cycles.seen.clear()


async def test_nothing_is_decided_before_the_first_list(rig: Rig, cycles: Cycles) -> None:
    async with running(rig):
        rig.put(make_pod(node=None))
        await rig.clock.advance(35)
        assert cycles.seen == []

        rig.sync()
        await rig.clock.advance(1)
        assert len(cycles.seen) == 1


async def test_a_cycle_runs_at_each_evaluation_interval(rig: Rig, cycles: Cycles) -> None:
    rig.sync()
    async with running(rig):
        await first_cycle(rig, cycles)
        await rig.clock.advance(35)

    assert cycles.times == pytest.approx([10.01, 20.01, 30.01], abs=0.1)
    assert {trigger for _, trigger in cycles.seen} == {Trigger.UNHAPPY}


async def test_the_end_of_a_wait_starts_a_cycle(rig: Rig, cycles: Cycles) -> None:
    rig.sync()
    cycles.until = NOW + 3
    async with running(rig):
        await first_cycle(rig, cycles)
        cycles.until = None
        await rig.clock.advance(12)

    assert cycles.times == [3.0]


async def test_a_wait_that_is_over_already_does_not_spin(rig: Rig, cycles: Cycles) -> None:
    rig.sync()
    cycles.until = NOW - 5
    async with running(rig):
        await first_cycle(rig, cycles)
        await rig.clock.advance(1)

    assert len(cycles.seen) <= 20


async def test_a_burst_of_signals_is_one_cycle(rig: Rig, cycles: Cycles) -> None:
    rig.sync()
    async with running(rig):
        await first_cycle(rig, cycles)
        for number in range(100):
            rig.work_queue.add(f"pod-{number % 7}")
        await rig.clock.advance(1)

    assert len(cycles.seen) == 1


async def test_kses_cycle_comes_every_n_seconds_and_only_when_it_is_set(rig: Rig, cycles: Cycles) -> None:
    rig.sync()
    rig.settings = make_settings(triggers={"evaluation_interval": 10, "rematch_interval": 25})
    async with running(rig):
        await first_cycle(rig, cycles)
        await rig.clock.advance(56)

    intervals = [at for at, trigger in cycles.seen if trigger is Trigger.INTERVAL]
    assert intervals == pytest.approx([25, 50], abs=0.1)
    assert len(cycles.seen) > len(intervals)


async def test_a_new_interval_is_in_force_at_once(rig: Rig, cycles: Cycles) -> None:
    rig.sync()
    rig.settings = make_settings(triggers={"evaluation_interval": 10, "rematch_interval": "1h"})
    async with running(rig):
        await first_cycle(rig, cycles)
        await rig.clock.advance(5)
        rig.settings = make_settings(triggers={"evaluation_interval": 10, "rematch_interval": 20})
        rig.work_queue.add("settings")
        await rig.clock.advance(20)
        assert [round(at) for at, trigger in cycles.seen if trigger is Trigger.INTERVAL] == [20]

        cycles.seen.clear()
        rig.settings = make_settings(triggers={"evaluation_interval": 10})
        await rig.clock.advance(60)
        assert {trigger for _, trigger in cycles.seen} == {Trigger.UNHAPPY}


async def test_a_problem_that_the_planner_refuses_costs_one_cycle_only(rig: Rig, cycles: Cycles) -> None:
    rig.sync()
    cycles.failure = ProblemError("pod shop/x: usage of cpu is -1")
    async with running(rig) as task:
        await first_cycle(rig, cycles)
        cycles.failure = None
        await rig.clock.advance(10.1)
        assert not task.done()

    assert len(cycles.seen) == 1
    assert rig.loop.cycles == 2


async def test_the_reaction_is_measured_from_the_signal_to_the_eviction(rig: Rig, cycles: Cycles) -> None:
    pod = make_pod()
    rig.sync(pod)
    cycles.moves = (make_move(pod, "n2", "evicted", evicted=NOW),)

    await rig.loop.step({pod.uid: NOW - 0.25})

    assert rig.instruments.registry.get_sample_value("rematch_reaction_duration_seconds_sum") == pytest.approx(0.25)


async def test_the_loop_runs_real_cycles() -> None:
    rig = Rig(make_settings(mode="act"))
    pod = make_pod()
    rig.sync(pod, make_node("n1"), make_node("n2"))
    rig.measure({"web-1": 2.5}, {"n1": 3.9, "n2": 0.1})
    rig.fail(pod, 20)
    async with running(rig):
        await rig.clock.advance(0.1)
        await eventually(lambda: rig.writer.evicted)

    assert rig.writer.evicted == ["web-1"]


async def test_on_a_virtual_clock_the_loop_is_stepped_when_it_is_due(rig: Rig, cycles: Cycles) -> None:
    rig.sync()
    await rig.loop.step({})
    assert rig.loop.due_at == NOW + 10

    cycles.until = NOW + 3
    await rig.loop.step({})
    assert rig.loop.due_at == NOW + 3

    rig.clock.set(NOW + 3)
    outcome = await rig.loop.step({})
    assert outcome is not None
    assert rig.loop.due_at == NOW + 3 + SHORTEST_PAUSE

    cycles.failure = ProblemError("pod shop/x: usage of cpu is -1")
    assert await rig.loop.step({}) is None
    assert rig.loop.due_at == NOW + 13


async def test_an_error_of_any_kind_is_reported_and_the_next_cycle_comes_after_a_pause(
    rig: Rig, cycles: Cycles
) -> None:
    rig.sync()
    cycles.failure = RuntimeError("a bug")
    async with running(rig) as task:
        for _ in range(100):
            rig.work_queue.add("signal")
            await rig.clock.advance(0.1)
        assert not task.done()
        assert 3 <= len(cycles.seen) <= 5, "signals do not make it spin"
        assert rig.controller.failures.current == {"cycle": "RuntimeError: a bug"}
        assert rig.loop.stalled == ""

        cycles.failure = None
        await rig.clock.advance(30)
        assert rig.controller.failures.current == {}
    failures = rig.instruments.registry.get_sample_value("rematch_cycle_failures_total", {"stage": "cycle"})
    assert failures is not None
    assert failures >= 3


async def test_a_cycle_that_hangs_shows_in_the_heartbeat(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    async def hang(*_: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr("reactor.loop.run_cycle", hang)
    rig.sync()
    async with running(rig):
        await rig.clock.advance(100)
        assert rig.loop.stalled == ""
        await rig.clock.advance(200)
        assert rig.loop.stalled.startswith("the loop of the cycles has not run for ")


async def test_a_planner_that_hangs_is_given_up_at_its_deadline() -> None:
    rig = Rig(make_settings(mode="act", planner={"deadline": 0.05}))
    pod = make_pod()
    rig.sync(pod, make_node("n1"), make_node("n2"))
    rig.measure({"web-1": 3.5}, {"n1": 3.9, "n2": 0.1})
    rig.fail(pod, 20)
    release = threading.Event()

    class Hanging:
        def plan(self, _problem: object) -> None:
            release.wait(30)

    rig.loop._parts = replace(rig.controller.parts, make_planner=lambda *_: Hanging())  # type: ignore[arg-type]
    try:
        assert await rig.loop.step({}) is None
    finally:
        release.set()
    (text,) = rig.controller.failures.current.values()
    assert text == "PlannerError: planner stable: no plan within 0.05 s; see planner.deadline"
    assert rig.instruments.registry.get_sample_value("rematch_cycle_failures_total", {"stage": "plan"}) == 1
