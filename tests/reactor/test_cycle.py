"""Whole cycles: signals in the state, then decision, plan, execution and record."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace as replace_fields

import pytest
from msgspec.structs import replace

from matching.plan import Planner
from matching.problem import PodTerm, ProblemError, Requirement, Rules, Selector
from matching.testing import random_problem
from reactor.cluster.records import Pod
from reactor.cluster.writes import Binding, BindingAnswer, Eviction, EvictionAnswer
from reactor.cycle import run_cycle
from reactor.decision.decide import Trigger
from reactor.decision.wait_reasons import Reason
from reactor.errors import InputError
from reactor.execution.cycle_outcome import Outcome, Rematch
from reactor.state.moves import MoveState
from reactor.state.snapshot import Snapshot
from storage.rows import MoveRow, PlanRow
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
    overload(rig)
    return rig


def overload(rig: Rig) -> None:
    rig.measure({"web-1": 1.0, "db-1": 2.5}, {"n1": 3.9, "n2": 0.1})
    rig.fail(WEB, 20)


async def evicted(rig: Rig) -> None:
    await rig.run_cycle()
    assert rig.writer.evicted == ["web-1"]


async def test_a_failing_probe_becomes_a_better_placement(rig: Rig) -> None:
    outcome = await rig.run_cycle()
    assert outcome.rematch is not None
    assert rig.writer.evicted == ["web-1"]

    successor = rig.replace_pod(WEB, "web-2")
    await rig.run_cycle()
    assert rig.writer.bound == [("web-2", "n2")]

    rig.run_pod(successor, "n2", ready=False)
    await rig.run_cycle()
    rig.run_pod(successor, "n2")
    outcome = await rig.run_cycle()
    assert [move.state for move in outcome.moves] == [MoveState.DONE]
    assert not rig.executor.busy
    assert list(dict.fromkeys(row.state for row in rig.rows.moves)) == ["planned", "evicted", "bound", "done"]


async def test_a_plan_and_its_moves_are_in_the_store_before_a_pod_is_evicted(rig: Rig) -> None:
    await rig.run_cycle()
    assert rig.writer.evicted == ["web-1"]
    plan, move = rig.rows.safe
    assert isinstance(plan, PlanRow)
    assert isinstance(move, MoveRow)
    assert (move.state, move.plan_id) == ("planned", plan.id)


async def test_without_a_writable_store_nothing_is_evicted_but_pending_pods_are_bound(rig: Rig) -> None:
    rig.rows.writable = False
    for _ in range(2):
        await rig.run_cycle()
    assert rig.writer.evicted == []

    rig.put(make_pending("new-1"))
    await rig.run_cycle()
    assert [name for name, _node in rig.writer.bound] == ["new-1"]

    rig.rows.writable = True
    await rig.run_cycle()
    assert rig.writer.evicted == ["web-1"]


async def test_a_confirmed_plan_is_carried_out_instead_of_a_new_one(rig: Rig) -> None:
    rig.put(make_node("n3"))
    confirmed = Rematch("confirmed", make_plan(plan_move(WEB, "n3")), random_problem(0))

    outcome = await run_cycle(rig.controller.parts, Trigger.DEMAND, confirmed)

    assert outcome.rematch is confirmed
    assert [(row.plan_id, row.to_node) for row in rig.rows.moves[:1]] == [("confirmed", "n3")]
    assert [row.id for row in rig.rows.plans] == ["confirmed"]
    assert rig.writer.evicted == ["web-1"]


async def test_the_target_is_reserved_even_when_another_node_would_be_preferred(rig: Rig) -> None:
    await evicted(rig)
    rig.put(make_node("n3", cpu=1.2, memory=0.6 * GIB))

    rig.replace_pod(WEB, "web-2")
    await rig.run_cycle()

    assert rig.writer.bound == [("web-2", "n2")]


async def test_a_reserved_node_that_is_full_by_now_is_given_up(rig: Rig) -> None:
    await evicted(rig)
    rig.put(make_pod("x-1", node="n2", requests={"cpu": 3.9, "memory": GIB}), make_node("n3"))

    rig.replace_pod(WEB, "web-2")
    await rig.run_cycle()

    assert [node for name, node in rig.writer.bound if name == "web-2"] != ["n2"]
    assert len(rig.writer.bound) == 1


async def test_other_pods_do_not_get_the_reserved_room(rig: Rig) -> None:
    big = replace(WEB, requests={"cpu": 3.0, "memory": GIB})
    rig.put(big)
    await evicted(rig)
    rig.put(make_pending("x-1", requests={"cpu": 2.0, "memory": GIB}))

    await rig.run_cycle()

    assert rig.writer.bound == []
    rig.clock.set(NOW + 120)
    await rig.run_cycle()
    assert [name for name, _ in rig.writer.bound] == ["x-1"]


async def test_in_mode_observe_the_plan_is_recorded_and_nothing_is_touched(rig: Rig) -> None:
    rig.settings = make_settings(mode="observe")
    rig.put(make_pending("x-1"))

    outcome = await rig.run_cycle()

    assert outcome.rematch is not None
    assert rig.rows.plans[0].mode == "observe"
    assert (rig.writer.evicted, rig.writer.bound) == ([], [])
    assert not rig.executor.busy
    again = await rig.run_cycle()
    assert again.rematch is None
    assert [wait.reason for wait in again.decision.waits] == [Reason.OBSERVED]
    assert again.decision.waits[0].until == NOW + 60


async def test_observe_in_the_middle_of_a_plan_stops_what_has_not_started(rig: Rig) -> None:
    """`balance` makes two moves here, where `stable` makes one."""
    rig.settings = make_settings(mode="act", planner={"name": "balance"})
    second = make_pod("db-2")
    rig.put(second)
    rig.put(make_pod("db-3"))
    rig.measure({"web-1": 1.0, "db-1": 1.0, "db-2": 1.0, "db-3": 0.9}, {"n1": 3.9, "n2": 0.1})
    rig.fail(second, 20)
    outcome = await rig.run_cycle()
    assert outcome.rematch is not None
    assert len(outcome.rematch.plan.moves) >= 2
    assert len(rig.writer.evicted) == 1

    rig.settings = make_settings(mode="observe")
    outcome = await rig.run_cycle()

    assert {move.state for move in outcome.moves} == {MoveState.SKIPPED}
    assert len(rig.executor.active_moves().moves) == 1
    assert rig.executor.active_moves().moves[0].in_flight
    assert len(rig.writer.evicted) == 1


async def test_a_pod_backs_off_when_the_plan_does_not_help(rig: Rig) -> None:
    rig.put(make_node("n2", unschedulable=True))

    outcome = await rig.run_cycle()

    assert outcome.rematch is not None
    assert outcome.rematch.plan.moves == ()
    waits = (await rig.run_cycle()).decision.waits
    assert [(wait.reason, wait.until) for wait in waits] == [(Reason.CLUSTER_FULL, NOW + 60)]


async def test_while_a_move_is_in_flight_no_other_rematch_is_made(rig: Rig) -> None:
    await evicted(rig)
    rig.fail(DB, 20)

    outcome = await rig.run_cycle()

    assert outcome.rematch is None
    assert Reason.MOVE_IN_FLIGHT in {wait.reason for wait in outcome.decision.waits}
    assert (await rig.run_cycle(Trigger.INTERVAL)).rematch is None


async def test_a_late_replacement_brakes_its_namespace_but_not_binding(rig: Rig) -> None:
    await evicted(rig)
    rig.run_pod(rig.replace_pod(WEB, "web-2"), "n2", ready=False)
    rig.clock.set(NOW + 200)
    rig.measure({"db-1": 2.5}, {"n1": 3.9, "n2": 0.1})
    rig.fail(DB, 20)
    rig.put(make_pending("x-1"))

    await rig.run_cycle()
    outcome = await rig.run_cycle()

    assert [wait.reason for wait in outcome.decision.waits] == [Reason.BRAKED]
    assert ("x-1", "n2") in rig.writer.bound or ("x-1", "n1") in rig.writer.bound
    assert rig.writer.evicted == ["web-1"]


async def test_pending_pods_are_placed_without_any_metrics() -> None:
    rig = Rig()
    rig.sync(make_node("n1"), make_pending("web-1"), make_pending("web-2"))

    outcome = await rig.run_cycle()

    assert sorted(rig.writer.bound) == [("web-1", "n1"), ("web-2", "n1")]
    assert outcome.rematch is None
    assert await rig.bind() is None


async def test_a_binding_without_an_answer_is_believed_for_a_while() -> None:
    rig = Rig()
    rig.sync(make_node("n1"), make_pending("web-1"))
    rig.writer.bindings["web-1"] = BindingAnswer(Binding.UNKNOWN)

    await rig.bind()
    assert await rig.bind() is None
    rig.clock.set(NOW + 31)
    await rig.run_cycle()

    assert rig.writer.bound == [("web-1", "n1")] * 2


async def test_a_rematch_sees_the_bindings_that_the_watch_does_not_show_yet(rig: Rig) -> None:
    rig.put(make_pending("x-1"))

    outcome = await rig.run_cycle()

    assert outcome.rematch is not None
    (bound,) = rig.writer.bound
    assert [(pod.key, pod.node) for pod in outcome.rematch.problem.pods if pod.key == "shop/x-1"] == [
        ("shop/x-1", bound[1])
    ]


async def test_a_binding_that_always_fails_does_not_stop_the_rematches(rig: Rig) -> None:
    rig.put(make_pending("x-1"))
    rig.writer.bindings["x-1"] = BindingAnswer(Binding.FORBIDDEN, "no pods/binding")

    outcome = await rig.run_cycle()

    assert outcome.rematch is not None
    assert rig.writer.evicted == ["web-1"]


async def test_a_pod_with_an_unsupported_constraint_is_not_bound() -> None:
    rig = Rig()
    rig.sync(make_node("n1"), make_pending("web-1", unsupported=("podAntiAffinity",)))

    placement = await rig.bind()

    assert placement is not None
    assert placement.plan is None
    assert rig.writer.bound == []


async def test_a_pod_is_not_bound_beside_one_that_is_only_nominated() -> None:
    """It requires the other pod, which may still end on another node."""
    beside_db = PodTerm("kubernetes.io/hostname", Selector((Requirement("app", "In", ("db",)),)))
    nominated = make_pending("db-1", nominated_node="n1", scheduler_name="default-scheduler")
    rig = Rig()
    rig.sync(make_node("n1"), nominated, make_pending("web-1", rules=Rules(pod_affinity=(beside_db,))))

    await rig.run_cycle()
    assert rig.writer.bound == []

    rig.run_pod(nominated, "n1")
    await rig.run_cycle()
    assert rig.writer.bound == [("web-1", "n1")]


async def test_a_pod_is_not_bound_into_the_zone_of_one_that_is_only_nominated() -> None:
    near_db = PodTerm("zone", Selector((Requirement("app", "In", ("db",)),)))
    full = make_pod("db-0", node="n1", requests={"cpu": 2.0, "memory": GIB}, labels={"app": "other"})
    nominated = make_pending("db-1", nominated_node="n1", scheduler_name="default-scheduler")
    pending = make_pending("web-1", rules=Rules(pod_affinity=(near_db,)), requests={"cpu": 2.0, "memory": GIB})
    rig = Rig()
    rig.sync(make_node("n1", labels={"zone": "a"}), make_node("n2", labels={"zone": "a"}), full, nominated, pending)

    await rig.run_cycle()
    assert rig.writer.bound == []

    rig.run_pod(nominated, "n1")
    await rig.run_cycle()
    assert rig.writer.bound == [("web-1", "n2")]


async def test_a_pod_is_not_bound_into_the_room_of_a_nominated_one() -> None:
    room = {"cpu": 3.0, "memory": GIB}
    rig = Rig()
    rig.sync(
        make_node("n1"),
        make_pending("db-1", nominated_node="n1", scheduler_name="default-scheduler", requests=room),
        make_pending("web-1", requests=room),
    )
    await rig.run_cycle()
    assert rig.writer.bound == []


async def test_a_nominated_pod_of_ours_is_counted_once_when_it_is_bound() -> None:
    """Until the watch shows its binding, the record still names the nominated node."""
    room = {"cpu": 2.0, "memory": GIB}
    rig = Rig()
    rig.sync(make_node("n1"), make_pending("db-1", nominated_node="n1", requests=room))
    await rig.run_cycle()
    rig.put(make_pending("web-1", requests=room))
    await rig.run_cycle()
    assert rig.writer.bound == [("db-1", "n1"), ("web-1", "n1")]


async def test_the_interval_starts_a_rematch_of_all_eligible_pods() -> None:
    rig = Rig()
    rig.sync(WEB, DB, make_node("n1"), make_node("n2"))
    rig.measure({"web-1": 1.0, "db-1": 2.9}, {"n1": 3.95, "n2": 0.1})

    outcome = await rig.run_cycle(Trigger.INTERVAL)

    assert outcome.rematch is not None
    assert rig.rows.plans[0].trigger == "interval"


async def test_without_fresh_metrics_nothing_running_moves_even_on_demand() -> None:
    rig = Rig()
    rig.sync(WEB, DB, make_node("n1"), make_node("n2"))

    outcome = await rig.run_cycle(Trigger.DEMAND)

    assert outcome.rematch is not None
    assert outcome.rematch.plan.moves == ()


async def test_moves_are_cooled_down_by_lineage(rig: Rig) -> None:
    await evicted(rig)
    successor = rig.run_pod(rig.replace_pod(WEB, "web-2"), "n2")
    await rig.run_cycle()

    await rig.clock.advance(30)
    rig.measure({"web-2": 1.0}, {"n2": 3.9})
    rig.fail(successor, 20)
    waits = (await rig.run_cycle()).decision.waits

    assert [(wait.pod, wait.reason, wait.until) for wait in waits] == [("shop/web-2", Reason.COOLDOWN, NOW + 60)]


async def test_a_binding_that_failed_is_not_tried_again_before_the_api_server_wants_it() -> None:
    rig = Rig()
    rig.sync(make_node("n1"), make_pending("web-1"), make_pending("db-1"))
    rig.writer.bindings["web-1"] = BindingAnswer(Binding.THROTTLED, "slow down", 20.0)

    await rig.run_cycle()
    rig.clock.set(NOW + 19)
    await rig.run_cycle()
    assert sorted(rig.writer.bound) == [("db-1", "n1"), ("web-1", "n1")]

    rig.clock.set(NOW + 20)
    await rig.run_cycle()
    assert rig.writer.bound[2:] == [("web-1", "n1")]


async def test_observe_in_the_middle_of_a_move_still_brings_it_to_its_end(rig: Rig) -> None:
    await rig.run_cycle()
    assert rig.writer.evicted == [WEB.name]
    replacement = rig.replace_pod(WEB, "web-2")

    rig.settings = make_settings(mode="observe")
    await rig.run_cycle()

    assert rig.writer.bound == [(replacement.name, "n2")]


def refuse(_name: str, _parameters: Mapping[str, object]) -> Planner:
    raise ProblemError("pod shop/x: usage of cpu is -1")


async def refused(rig: Rig, trigger: Trigger = Trigger.UNHAPPY) -> None:
    """A cycle in which the planner refuses the problem."""
    with pytest.raises(ProblemError):
        await run_cycle(replace_fields(rig.controller.parts, make_planner=refuse), trigger)


async def test_the_end_of_a_move_is_recorded_although_the_planner_fails_in_the_same_cycle(rig: Rig) -> None:
    await evicted(rig)
    successor = rig.run_pod(rig.replace_pod(WEB, "web-2"), "n2")

    await refused(rig, Trigger.DEMAND)

    assert rig.rows.moves[-1].state == "done"
    assert rig.instruments.registry.get_sample_value("rematch_moves_total", {"outcome": "done"}) == 1
    assert rig.memory.cooldowns.lineage[successor.uid].generation == 1
    assert not rig.executor.busy


async def test_the_decision_of_a_cycle_is_recorded_although_its_planning_fails(rig: Rig) -> None:
    await refused(rig)

    assert [(row.kind, row.pod_key) for row in rig.rows.decisions] == [("rematch", "shop/web-1")]
    assert rig.writer.evicted == []


async def two_moves(rig: Rig, db_eviction: Callable[[], Awaitable[EvictionAnswer]]) -> None:
    """A cycle that evicts web-1, which a PDB refuses, and db-1, by `db_eviction`."""
    rig.settings = make_settings(mode="act", execution={"max_moves_in_flight": 2})
    rig.put(make_node("n3"))
    rig.executor.adopt(make_plan(plan_move(DB, "n3"), plan_move(WEB, "n2")), "plan-1", rig.snapshot())
    rig.writer.evictions["web-1"] = EvictionAnswer(Eviction.PDB, "would violate the budget")
    evict = rig.writer.evict

    async def evict_or_fail(pod: Pod) -> EvictionAnswer:
        answer = await evict(pod)
        return await db_eviction() if pod.name == "db-1" else answer

    rig.writer.evict = evict_or_fail  # type: ignore[method-assign]
    await rig.run_cycle()


async def broken() -> EvictionAnswer:
    await asyncio.sleep(0)
    raise InputError("token: cannot be read")


async def test_an_eviction_that_fails_does_not_lose_what_the_others_did(rig: Rig) -> None:
    with pytest.raises(ExceptionGroup):
        await two_moves(rig, broken)

    assert rig.memory.cooldowns.backoffs[WEB.uid].reason is Reason.PDB
    assert [(row.pod_key, row.state) for row in rig.rows.moves] == [("shop/web-1", "failed")]
    assert [move.pod.name for move in rig.executor.active_moves().moves] == ["db-1"]


async def test_a_failing_record_does_not_hide_why_the_cycle_failed(rig: Rig) -> None:
    def fail(_cycle: str, _snapshot: Snapshot, _outcome: Outcome) -> None:
        raise ValueError("the dashboard")

    rig.recorder.listen(fail)

    await refused(rig)


async def test_a_cycle_that_is_cancelled_while_a_pod_is_evicted_is_not_recorded(rig: Rig) -> None:
    cycle = asyncio.create_task(two_moves(rig, asyncio.Event().wait))  # type: ignore[arg-type]
    await eventually(lambda: rig.writer.evicted == ["db-1", "web-1"])
    cycle.cancel()

    with pytest.raises(asyncio.CancelledError):
        await cycle
    assert (rig.rows.moves, rig.rows.decisions) == ([], [])
    assert rig.memory.cooldowns.backoffs[WEB.uid].reason is Reason.PDB


async def test_a_replacement_is_bound_to_its_reserved_node_without_any_planner(rig: Rig) -> None:
    await evicted(rig)
    rig.replace_pod(WEB, "web-2")

    placement = await rig.bind()

    assert rig.writer.bound == [("web-2", "n2")]
    assert placement is not None
    assert placement.plan is None
    assert [(row.kind, row.reason, row.pod_key) for row in rig.rows.decisions][-1] == ("place", "pending", "shop/web-2")


async def test_other_pods_are_matched_around_a_replacement(rig: Rig) -> None:
    big = replace(WEB, requests={"cpu": 3.0, "memory": GIB})
    rig.put(big)
    await evicted(rig)
    rig.put(make_pending("x-1", requests={"cpu": 2.0, "memory": GIB}))
    rig.replace_pod(WEB, "web-2", requests={"cpu": 3.0, "memory": GIB})

    await rig.run_cycle()

    assert rig.writer.bound[0] == ("web-2", "n2")
    assert ("x-1", "n2") not in rig.writer.bound
