"""Eviction and binding, and what their answers mean for the moves."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reactor.cluster.records import Pod
from reactor.cluster.writes import Binding, BindingAnswer, Eviction, EvictionAnswer
from reactor.decision.reasons import Reason
from reactor.execution.executor import Executor
from reactor.record.history import lineage_from
from reactor.state.moves import Lineage, MoveState, Ongoing
from reactor.state.snapshot import Snapshot
from storage.rows import MoveRow
from tests.support.clock import NOW
from tests.support.cluster import make_node, make_pending, make_pod, make_settings, make_snapshot, make_workload
from tests.support.moves import make_move, make_plan
from tests.support.writer import FakeWriter

NODES = [make_node("n1"), make_node("n2")]
SETTINGS = make_settings(mode="act")
WEB, DB = make_pod("web-1"), make_pod("db-1")


def seen(executor: Executor, *pods: Pod, now: float = NOW) -> Snapshot:
    owners = [make_workload(pod.owner) for pod in (WEB, DB) if pod.owner is not None]
    return make_snapshot(pods, NODES, ongoing=executor.ongoing(), now=now, workloads=owners)


async def started(answer: EvictionAnswer) -> tuple[Executor, FakeWriter, MoveState]:
    writer = FakeWriter()
    writer.evictions["web-1"] = answer
    executor = Executor(writer.writer)
    executor.adopt(make_plan(make_move(WEB, "n2")), "plan-1", seen(executor, WEB))
    (run,) = await executor.start(seen(executor, WEB), SETTINGS)
    assert run.state is MoveState(run.state)
    return executor, writer, run.state


@pytest.mark.parametrize("outcome", [Eviction.ACCEPTED, Eviction.UNKNOWN])
async def test_an_eviction_that_may_have_happened_is_in_flight(outcome: Eviction) -> None:
    executor, writer, stage = await started(EvictionAnswer(outcome, "no answer"))

    assert stage is MoveState.EVICTED
    assert writer.evicted == ["web-1"]
    assert [run.siblings for run in executor.ongoing().in_flight] == [{WEB.uid}]


@pytest.mark.parametrize("outcome", [Eviction.GONE, Eviction.REPLACED])
async def test_a_pod_that_is_gone_already_is_skipped(outcome: Eviction) -> None:
    executor, _, stage = await started(EvictionAnswer(outcome))

    assert stage is MoveState.SKIPPED
    assert not executor.busy
    assert executor.ongoing().resting == {}


@pytest.mark.parametrize(
    ("answer", "reason", "seconds"),
    [
        (EvictionAnswer(Eviction.PDB, "would violate the budget", 10.0), Reason.PDB, 60),
        (EvictionAnswer(Eviction.SEVERAL_PDBS, "more than one budget"), Reason.PDB, 60),
        (EvictionAnswer(Eviction.THROTTLED, "slow down", 300.0), Reason.EVICTION_FAILED, 300),
        (EvictionAnswer(Eviction.FORBIDDEN, "pods/eviction"), Reason.EVICTION_FAILED, 60),
        (EvictionAnswer(Eviction.FAILED), Reason.EVICTION_FAILED, 60),
    ],
)
async def test_a_refused_eviction_ends_the_move_and_lets_the_pod_rest(
    answer: EvictionAnswer, reason: Reason, seconds: float
) -> None:
    executor, _, stage = await started(answer)

    assert stage is MoveState.FAILED
    assert not executor.busy
    rest = executor.ongoing().resting[WEB.uid]
    assert (rest.reason, rest.until) == (reason, NOW + seconds)
    assert answer.outcome in rest.text
    assert answer.message in rest.text


async def test_a_plan_is_adopted_without_its_bindings_and_without_pods_that_are_gone() -> None:
    executor = Executor(FakeWriter().writer)
    pending = make_pending("web-2")
    plan = make_plan(make_move(pending, "n1"), make_move(DB, "n2"), make_move(WEB, "n2"))

    adopted = executor.adopt(plan, "plan-1", seen(executor, WEB, pending))

    assert [run.pod.name for run in adopted] == ["web-1"]
    assert adopted[0].plan_id == "plan-1"


async def test_the_next_move_starts_only_when_the_replacement_is_ready() -> None:
    writer = FakeWriter()
    executor = Executor(writer.writer)
    executor.adopt(make_plan(make_move(WEB, "n2"), make_move(DB, "n2")), "plan-1", seen(executor, WEB, DB))
    await executor.start(seen(executor, WEB, DB), SETTINGS)

    for pods in ((DB,), (DB, make_pending("web-2")), (DB, make_pod("web-2", node="n2", ready=False))):
        executor.follow(seen(executor, *pods), SETTINGS)
        await executor.start(seen(executor, *pods), SETTINGS)
        assert writer.evicted == ["web-1"]

    ready = (DB, make_pod("web-2", node="n2"))
    (done,) = executor.follow(seen(executor, *ready), SETTINGS)
    assert done.state is MoveState.DONE
    await executor.start(seen(executor, *ready), SETTINGS)
    assert writer.evicted == ["web-1", "db-1"]


async def test_what_has_not_started_can_be_stopped() -> None:
    writer = FakeWriter()
    executor = Executor(writer.writer)
    executor.adopt(make_plan(make_move(WEB, "n2"), make_move(DB, "n2")), "plan-1", seen(executor, WEB, DB))
    await executor.start(seen(executor, WEB, DB), SETTINGS)

    (stopped,) = executor.stop(NOW, "mode is observe now")

    assert (stopped.pod.name, stopped.state, stopped.outcome) == ("db-1", MoveState.SKIPPED, "mode is observe now")
    assert [run.pod.name for run in executor.ongoing().runs] == ["web-1"]


async def test_the_replacement_of_a_moved_pod_is_its_heir_and_its_heirs_count_on() -> None:
    executor = Executor(FakeWriter().writer)
    old = WEB
    for generation, name in enumerate(("web-2", "web-3", "web-4"), start=1):
        heir = make_pod(name, node="n1")
        executor.adopt(make_plan(make_move(old, "n2")), "plan", seen(executor, old))
        await executor.start(seen(executor, old), SETTINGS)
        executor.follow(seen(executor, heir, now=NOW + generation), SETTINGS)
        assert dict(executor.ongoing().lineage) == {heir.uid: Lineage(NOW + generation, generation, old.uid)}
        old = heir


def _row(old: str, new: str, started: float, end: str) -> MoveRow:
    stored = MoveRow(old, "p", old, f"shop/{old}", "w", "n1", "n2", end, started, outcome=end, replacement_uid=new)
    return replace(stored, ended=started + 5)


def test_the_lineage_is_read_back_from_the_stored_moves() -> None:
    rows = [
        _row("uid-c", "uid-d", NOW + 30, "failed"),
        _row("uid-b", "uid-c", NOW + 10, "done"),
        _row("uid-a", "uid-b", NOW, "done"),
    ]

    lineage = lineage_from(rows)

    assert lineage["uid-b"] == Lineage(NOW + 5, 1, "uid-a")
    assert lineage["uid-c"] == Lineage(NOW + 15, 2, "uid-b")
    assert "uid-d" not in lineage
    assert Executor(FakeWriter().writer, lineage).ongoing() == Ongoing(lineage=lineage)


def test_what_concerns_pods_that_are_gone_is_forgotten() -> None:
    executor = Executor(FakeWriter().writer, {WEB.uid: Lineage(NOW, 1), "gone": Lineage(NOW, 4)})

    executor.follow(seen(executor, WEB), SETTINGS)

    assert set(executor.ongoing().lineage) == {WEB.uid}


@pytest.mark.parametrize("outcome", list(Binding))
async def test_every_answer_to_a_binding_is_told(outcome: Binding) -> None:
    writer = FakeWriter()
    writer.bindings["web-2"] = BindingAnswer(outcome, "what the API said")
    pending = make_pending("web-2")
    executor = Executor(writer.writer)

    (bound,) = await executor.bind([make_move(pending, "n2")], seen(executor, pending))

    assert writer.bound == [("web-2", "n2")]
    assert bound.answer.outcome is outcome
    assert bound.succeeded is (outcome in (Binding.BOUND, Binding.UNKNOWN))
