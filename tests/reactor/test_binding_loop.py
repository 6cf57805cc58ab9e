"""Binding beside the cycles: nothing that a cycle does can delay it, and both never use the same room."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace as replace_fields

import pytest
from msgspec.structs import replace

import reactor.binding
import reactor.cycle
from matching.plan import Plan
from matching.problem import Problem
from matching.registry import planner_class
from reactor.cluster.records import Pod
from reactor.cluster.writes import Binding, BindingAnswer, Eviction, EvictionAnswer
from reactor.decision.decide import Trigger
from reactor.errors import PlannerError
from reactor.planning.pending import pending_pods
from reactor.settings.model import Settings
from reactor.settings.planner import make_planner, placing_planner
from tests.support.clock import NOW, eventually
from tests.support.cluster import GIB, make_node, make_pending, make_pod, make_settings
from tests.support.moves import make_plan, plan_move
from tests.support.rig import Rig

WEB, DB = make_pod("web-1"), make_pod("db-1")


@pytest.fixture
def rig() -> Rig:
    """web-1 fails on an overloaded n1; n2 is idle."""
    rig = Rig()
    rig.sync(WEB, DB, make_node("n1"), make_node("n2"))
    rig.measure({"web-1": 1.0, "db-1": 2.5}, {"n1": 3.9, "n2": 0.1})
    rig.fail(WEB, 20)
    return rig


@asynccontextmanager
async def both_loops(rig: Rig) -> AsyncIterator[None]:
    loops = (rig.loop.run(), rig.controller.binding_loop.run())
    tasks = [asyncio.create_task(loop) for loop in loops]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def slow_evictions(rig: Rig, answer: Eviction = Eviction.ACCEPTED) -> asyncio.Event:
    """Evictions are not answered before the event is set."""
    answered, evict = asyncio.Event(), rig.writer.evict

    async def slow(pod: Pod) -> EvictionAnswer:
        await evict(pod)
        await answered.wait()
        return EvictionAnswer(answer)

    rig.writer.evict = slow  # type: ignore[method-assign]
    return answered


async def test_an_eviction_that_is_not_answered_does_not_delay_a_binding(rig: Rig) -> None:
    slow_evictions(rig)
    async with both_loops(rig):
        await rig.clock.advance(0.1)
        await eventually(lambda: rig.writer.evicted == ["web-1"])
        rig.put(make_pending("x-1"))
        await rig.clock.advance(0.1)
        await eventually(lambda: rig.writer.bound)
    assert [name for name, _ in rig.writer.bound] == ["x-1"]


async def test_a_planner_that_hangs_does_not_delay_a_binding(rig: Rig) -> None:
    hangs, release = threading.Event(), threading.Event()

    class Hanging:
        name, waives = "hanging", frozenset[str]()

        def plan(self, _problem: Problem) -> Plan:
            hangs.set()
            release.wait(30)
            return make_plan()

    parts = replace_fields(rig.controller.parts, make_planner=lambda *_: Hanging())  # type: ignore[arg-type]
    rig.loop._parts = parts
    try:
        async with both_loops(rig):
            await rig.clock.advance(0.1)
            await eventually(hangs.is_set)
            rig.put(make_pending("x-1"))
            await rig.clock.advance(0.1)
            await eventually(lambda: rig.writer.bound)
    finally:
        release.set()


async def test_a_binding_that_is_not_answered_does_not_delay_the_others() -> None:
    rig = Rig()
    rig.sync(make_node("n1"), make_pending("web-1"))
    bind, never = rig.writer.bind, asyncio.Event()

    async def slow(pod: Pod, node: str) -> BindingAnswer:
        answer = await bind(pod, node)
        if pod.name == "web-1":
            await never.wait()
        return answer

    rig.writer.bind = slow  # type: ignore[method-assign]
    async with both_loops(rig):
        await rig.clock.advance(0.1)
        await eventually(lambda: rig.writer.bound == [("web-1", "n1")])
        rig.put(make_pending("db-1"))
        await rig.clock.advance(0.1)
        await eventually(lambda: ("db-1", "n1") in rig.writer.bound)
        await rig.clock.advance(60)
        assert rig.writer.bound.count(("web-1", "n1")) == 1, "its room is taken until there is an answer"


async def test_the_replacement_of_an_eviction_without_an_answer_goes_to_its_node(rig: Rig) -> None:
    answered = slow_evictions(rig)
    cycle = asyncio.create_task(rig.run_cycle())
    await eventually(lambda: rig.writer.evicted == ["web-1"])
    rig.put(make_node("n3", cpu=8.0))
    rig.replace_pod(WEB, "web-2")

    await rig.bind()

    assert rig.writer.bound == [("web-2", "n2")]
    answered.set()
    await cycle
    assert [(move.state, move.replacement_key) for move in rig.snapshot().moves.moves] == [("evicted", "")]
    await rig.run_cycle()
    assert [(move.state, move.replacement_key) for move in rig.snapshot().moves.moves] == [("bound", "shop/web-2")]


BIG = {"cpu": 3.0, "memory": GIB}


async def test_room_that_a_move_reserves_while_a_placement_is_made_is_not_used_twice(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """n2 has room for one of the two only."""
    rig.put(replace(WEB, requests=BIG), make_pending("x-1", requests=BIG))
    rig.executor.adopt(make_plan(plan_move(WEB, "n2")), "plan-1", rig.snapshot())
    planning, go_on = asyncio.Event(), asyncio.Event()
    place = rig.controller.binding_parts.planner.place

    async def slow(*arguments: object) -> Plan:
        plan = await place(*arguments)  # type: ignore[arg-type]
        planning.set()
        await go_on.wait()
        return plan

    monkeypatch.setattr(rig.controller.binding_parts.planner, "place", slow)
    answered = slow_evictions(rig)
    binding = asyncio.create_task(rig.bind())
    await planning.wait()
    cycle = asyncio.create_task(reactor.cycle.run_cycle(rig.controller.parts, Trigger.UNHAPPY))
    await eventually(lambda: rig.writer.evicted == ["web-1"])
    go_on.set()
    await binding
    assert rig.writer.bound == []
    answered.set()
    await cycle


async def test_room_that_a_binding_takes_while_a_plan_is_made_is_not_used_twice(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig.put(replace(WEB, requests=BIG))
    storing, go_on = asyncio.Event(), asyncio.Event()
    store = rig.recorder.store_planned_moves

    async def slow(*arguments: object) -> bool:
        storing.set()
        await go_on.wait()
        return await store(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(rig.recorder, "store_planned_moves", slow)
    cycle = asyncio.create_task(rig.run_cycle())
    await storing.wait()
    rig.put(make_pending("x-1", requests=BIG))
    await rig.bind()
    assert rig.writer.bound == [("x-1", "n2")]
    go_on.set()
    outcome = await cycle
    assert rig.writer.evicted == []
    assert [move.outcome for move in outcome.executed if move.ended] == ["n2 has no room for it now"]


async def test_a_pod_that_is_protected_while_a_plan_is_made_is_not_moved(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = rig.recorder.store_planned_moves

    async def meanwhile(*arguments: object) -> bool:
        rig.put(replace(WEB, resource_version="2", annotations={"rematch.io/do-not-move": "true"}))
        return await store(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(rig.recorder, "store_planned_moves", meanwhile)
    outcome = await rig.run_cycle()
    assert rig.writer.evicted == []
    assert [move.state for move in outcome.executed if move.ended] == ["skipped"]


async def test_a_heartbeat_of_a_node_is_no_reason_to_place_pods_again() -> None:
    rig = Rig()
    rig.sync(make_node("n1", resource_version="1"))
    before = rig.state.room_changes
    rig.put(make_node("n1", resource_version="2"))
    assert rig.state.room_changes == before
    rig.put(make_node("n1", resource_version="3", unschedulable=True))
    assert rig.state.room_changes == before + 1


async def test_the_room_of_a_binding_that_failed_is_free_again() -> None:
    rig = Rig()
    rig.sync(make_node("n1"), make_pending("web-1", requests=BIG))
    rig.writer.bindings["web-1"] = BindingAnswer(Binding.FAILED, "no")
    await rig.bind()
    rig.put(make_pending("db-1", requests=BIG))
    await rig.bind()
    assert rig.writer.bound == [("web-1", "n1"), ("db-1", "n1")]


@pytest.mark.parametrize("mode", ["bind", "act"])
async def test_pending_pods_are_bound_in_these_modes(mode: str) -> None:
    rig = Rig(make_settings(mode=mode))
    rig.sync(make_node("n1"), make_pending("web-1"))
    await rig.run_cycle()
    assert rig.writer.bound == [("web-1", "n1")]


async def test_mode_bind_evicts_nobody_and_stops_what_has_not_started(rig: Rig) -> None:
    rig.settings = make_settings(mode="bind")
    outcome = await rig.run_cycle()
    assert outcome.rematch is not None
    assert rig.writer.evicted == []
    waits = (await rig.run_cycle()).decision.waits
    assert "mode is bind" in waits[0].text

    rig.settings = make_settings(mode="act")
    await rig.run_cycle()
    assert rig.writer.evicted == ["web-1"]
    rig.settings = make_settings(mode="bind")
    rig.replace_pod(WEB, "web-2")
    await rig.run_cycle()
    assert rig.writer.bound == [("web-2", "n2")]


async def test_a_pod_that_fits_nowhere_is_bound_soon_after_room_becomes_free() -> None:
    rig = Rig()
    full = make_pod("full-1", node="n1", requests={"cpu": 3.5, "memory": GIB})
    rig.sync(make_node("n1"), full, make_pending("web-1", requests=BIG))
    async with both_loops(rig):
        await rig.clock.advance(1)
        await eventually(lambda: rig.rows.decisions)
        rig.remove(full)
        await rig.clock.advance(1.1)
        await eventually(lambda: rig.writer.bound)
    assert rig.writer.bound == [("web-1", "n1")]
    assert rig.clock.now() <= NOW + 3


async def test_a_placement_that_takes_too_long_is_tried_with_fewer_pods(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reactor.binding, "PLANNING_DEADLINE", 0.3)
    rig = Rig()
    rig.sync(make_node("n1"), *(make_pending(f"web-{number}", created=NOW - number) for number in range(4)))
    release, kind = threading.Event(), planner_class("stable")
    plan = kind.plan

    def slow(self: object, problem: Problem) -> Plan:
        if sum(pod.node is None for pod in problem.pods) > 2:
            release.wait(30)
        return plan(self, problem)  # type: ignore[arg-type]

    monkeypatch.setattr(kind, "plan", slow)
    try:
        with pytest.raises(PlannerError, match=r"4 pending pods: no plan within 0.3 s; next are 2 of them"):
            await reactor.binding.bind_pending(rig.controller.binding_parts)
        await rig.bind()
        assert sorted(name for name, _ in rig.writer.bound) == ["web-2", "web-3"]
        await rig.bind()
        assert len(rig.writer.bound) == 4
    finally:
        release.set()


def settings_with(**planner: object) -> Settings:
    return make_settings(planner=planner)


def test_pending_pods_are_placed_by_planners_of_ours_only() -> None:
    assert placing_planner(settings_with(name="greedy"), make_planner).name == "greedy"
    function = settings_with(name="function", parameters={"path": "os.path:join"})
    assert placing_planner(function, make_planner).name == "stable"


async def test_an_error_in_a_pass_is_reported_and_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    rig = Rig()
    rig.sync(make_node("n1"), make_pending("web-1"))
    check, tries = pending_pods, list[float]()

    def broken(*arguments: object) -> object:
        tries.append(rig.clock.now())
        if len(tries) < 4:
            raise KeyError("a bug")
        return check(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr("reactor.binding.pending_pods", broken)
    async with both_loops(rig):
        for _ in range(60):
            rig.put(make_pending("web-1", resource_version=str(len(tries) + rig.clock.now())))
            await rig.clock.advance(0.2)
        await eventually(lambda: rig.writer.bound)
    assert tries[3] - tries[0] >= 1 + 2 + 4
    assert rig.controller.failures.current == {}
    assert rig.instruments.registry.get_sample_value("rematch_cycle_failures_total", {"stage": "place"}) == 3


async def test_a_pass_that_failed_is_repeated_without_a_signal(monkeypatch: pytest.MonkeyPatch) -> None:
    rig = Rig()
    rig.sync(make_node("n1"), make_pending("web-1"))
    check, tries = pending_pods, list[float]()

    def broken(*arguments: object) -> object:
        tries.append(rig.clock.now())
        if len(tries) < 3:
            raise KeyError("a bug")
        return check(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr("reactor.binding.pending_pods", broken)
    async with both_loops(rig):
        for _ in range(30):
            await rig.clock.advance(0.2)
        await eventually(lambda: rig.writer.bound)
    assert tries[2] <= NOW + 6


async def test_a_pod_that_fits_and_is_not_bound_in_time_is_named() -> None:
    rig = Rig()
    rig.sync(make_node("n1"), make_pending("web-1"), make_pending("big-1", requests={"cpu": 99.0, "memory": GIB}))
    rig.writer.bindings["web-1"] = BindingAnswer(Binding.FORBIDDEN, "no")
    loop = rig.controller.binding_loop
    await rig.bind()
    rig.clock.set(NOW + 29)
    await rig.bind()
    assert loop.late() == []
    rig.clock.set(NOW + 31)
    (text,) = loop.late()
    assert text.startswith("shop/web-1 waits for its binding for 31 s")

    rig.settings = make_settings(mode="observe")
    assert loop.late() == []
    rig.settings = make_settings(mode="act")
    rig.run_pod(make_pending("web-1"), "n1")
    assert loop.late() == []


TOO_BIG = {"cpu": 99.0, "memory": GIB}


async def test_a_pod_that_fits_nowhere_is_marked_once_and_again_when_the_reason_changes() -> None:
    rig = Rig()
    rig.sync(make_node("n1"), make_pending("big-1", requests=TOO_BIG), make_pending("odd-1", unsupported=("x",)))
    for _ in range(3):
        await rig.bind()
    marks = sorted(rig.writer.unschedulable)
    assert [(name, reason) for name, reason, _ in marks] == [("big-1", "Unschedulable"), ("odd-1", "SchedulerError")]

    rig.put(make_node("n1", unschedulable=True))
    await rig.bind()
    assert len(rig.writer.unschedulable) == 2, "not at once"
    rig.clock.set(NOW + 61)
    await rig.bind()
    assert [name for name, _, _ in rig.writer.unschedulable[2:]] == ["big-1"]
    assert rig.writer.unschedulable[2][2] != marks[0][2]


async def test_a_mark_that_was_not_written_is_written_later_and_mode_observe_marks_nobody() -> None:
    rig = Rig(make_settings(mode="observe"))
    rig.sync(make_node("n1"), make_pending("big-1", requests=TOO_BIG))
    await rig.bind()
    assert rig.writer.unschedulable == []

    rig.settings = make_settings(mode="bind")
    rig.writer.trouble_with_conditions = "403: no pods/status"
    await rig.bind()
    await rig.bind()
    assert len(rig.writer.unschedulable) == 1
    rig.writer.trouble_with_conditions = ""
    rig.clock.set(NOW + 61)
    for _ in range(2):
        await rig.bind()
    assert len(rig.writer.unschedulable) == 2
