"""Eviction and binding, and what their answers mean for the moves."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import replace

import pytest

from matching.problem import Strategy
from reactor.cluster.records import Pod
from reactor.cluster.writes import Eviction, EvictionAnswer
from reactor.decision.cooldowns import Cooldowns, Lineage
from reactor.decision.wait_reasons import Reason
from reactor.execution.executor import Executor
from reactor.execution.journal import MemoryJournal
from reactor.record.history import lineage_from
from reactor.state.moves import Move, MoveState
from reactor.state.snapshot import Snapshot
from storage.rows import MoveRow
from tests.support.clock import NOW
from tests.support.cluster import (
    make_eligibility,
    make_node,
    make_pending,
    make_pod,
    make_settings,
    make_snapshot,
    make_workload,
)
from tests.support.moves import make_move, make_plan, plan_move
from tests.support.writer import FakeWriter

NODES = [make_node("n1"), make_node("n2")]
SETTINGS = make_settings(mode="act")
WEB, DB = make_pod("web-1"), make_pod("db-1")


def seen(executor: Executor, *pods: Pod, now: float = NOW) -> Snapshot:
    owners = [make_workload(pod.owner) for pod in (WEB, DB) if pod.owner is not None]
    return make_snapshot(pods, NODES, moves=executor.active_moves(), now=now, workloads=owners)


def follow(executor: Executor, *pods: Pod, now: float = NOW) -> list[Move]:
    return executor.follow(seen(executor, *pods, now=now).cluster, now, SETTINGS)


async def start(executor: Executor, *pods: Pod) -> list[Move]:
    changed: list[Move] = []
    await executor.start(make_eligibility(seen(executor, *pods), SETTINGS), changed.append)
    return changed


async def started(answer: EvictionAnswer) -> tuple[Executor, FakeWriter, Move]:
    writer = FakeWriter()
    writer.evictions["web-1"] = answer
    executor = Executor(writer.writer)
    executor.adopt(make_plan(plan_move(WEB, "n2")), "plan-1", seen(executor, WEB))
    (move,) = await start(executor, WEB)
    return executor, writer, move


@pytest.mark.parametrize("outcome", [Eviction.ACCEPTED, Eviction.UNKNOWN])
async def test_an_eviction_that_may_have_happened_is_in_flight(outcome: Eviction) -> None:
    executor, writer, move = await started(EvictionAnswer(outcome, "no answer"))

    assert move.state is MoveState.EVICTED
    assert writer.evicted == ["web-1"]
    assert follow(executor, WEB) == []
    assert executor.active_moves().in_flight == (move,)


@pytest.mark.parametrize("outcome", [Eviction.GONE, Eviction.REPLACED])
async def test_a_pod_that_is_gone_already_is_skipped(outcome: Eviction) -> None:
    executor, _, move = await started(EvictionAnswer(outcome))

    assert move.state is MoveState.SKIPPED
    assert not executor.busy
    assert Cooldowns().after_moves([move], SETTINGS).backoffs == {}


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
async def test_a_refused_eviction_ends_the_move_and_the_pod_backs_off(
    answer: EvictionAnswer, reason: Reason, seconds: float
) -> None:
    executor, _, move = await started(answer)

    assert move.state is MoveState.FAILED
    assert not executor.busy
    backoff = Cooldowns().after_moves([move], SETTINGS).backoffs[WEB.uid]
    assert (backoff.reason, backoff.until) == (reason, NOW + seconds)
    assert answer.outcome in backoff.text
    assert answer.message in backoff.text


def test_a_surge_that_was_taken_back_is_not_tried_again_at_once() -> None:
    undone = make_move(WEB, "n2", "failed", strategy=Strategy.SCALE_SURGE, ended=NOW, outcome="not Ready in time")
    backoff = Cooldowns().after_moves([undone], SETTINGS).backoffs[WEB.uid]
    assert (backoff.until, backoff.text) == (NOW + SETTINGS.decision.cooldown, "not Ready in time")


async def test_an_eviction_that_was_cut_off_is_followed_when_its_repetition_finds_no_pod() -> None:
    writer = FakeWriter()
    executor = Executor(writer.writer)
    executor.adopt(make_plan(plan_move(WEB, "n2")), "plan-1", seen(executor, WEB))
    answer = writer.evict

    async def cut_off(pod: Pod) -> EvictionAnswer:
        raise asyncio.CancelledError

    writer.evict = cut_off  # type: ignore[method-assign]
    with contextlib.suppress(asyncio.CancelledError):
        await start(executor, WEB)
    writer.evict = answer  # type: ignore[method-assign]
    writer.evictions["web-1"] = EvictionAnswer(Eviction.GONE)
    changed: list[Move] = []
    later = NOW + 1
    await executor.proceed(seen(executor, WEB, now=later).cluster, later, SETTINGS, changed.append, stopping=False)
    assert [move.state for move in changed] == [MoveState.EVICTED]


async def test_moves_that_are_dropped_while_they_are_forgotten_are_no_error() -> None:
    writer, journal = FakeWriter(), MemoryJournal()
    writer.evictions["web-1"] = EvictionAnswer(Eviction.PDB)
    executor = Executor(writer.writer, journal=journal)
    executor.adopt(make_plan(plan_move(WEB, "n2")), "plan-1", seen(executor, WEB))
    await start(executor, WEB)
    removed: list[str] = []

    async def remove(move_id: str) -> None:
        executor.drop_all()
        removed.append(move_id)

    journal.remove = remove  # type: ignore[method-assign]
    await executor.forget_finished()
    assert len(removed) == 1
    assert executor.due_at(NOW) is None


async def test_a_plan_is_adopted_without_its_bindings_and_without_pods_that_are_gone() -> None:
    executor = Executor(FakeWriter().writer)
    pending = make_pending("web-2")
    plan = make_plan(plan_move(pending, "n1"), plan_move(DB, "n2"), plan_move(WEB, "n2"))

    adopted = executor.adopt(plan, "plan-1", seen(executor, WEB, pending))

    assert [move.pod.name for move in adopted] == ["web-1"]
    assert adopted[0].plan_id == "plan-1"


async def test_the_next_move_starts_only_when_the_replacement_is_ready() -> None:
    writer = FakeWriter()
    executor = Executor(writer.writer)
    executor.adopt(make_plan(plan_move(WEB, "n2"), plan_move(DB, "n2")), "plan-1", seen(executor, WEB, DB))
    await start(executor, WEB, DB)

    for pods in ((DB,), (DB, make_pending("web-2")), (DB, make_pod("web-2", node="n2", ready=False))):
        follow(executor, *pods)
        await start(executor, *pods)
        assert writer.evicted == ["web-1"]

    ready = (DB, make_pod("web-2", node="n2"))
    (done,) = follow(executor, *ready)
    assert done.state is MoveState.DONE
    await start(executor, *ready)
    assert writer.evicted == ["web-1", "db-1"]


async def test_what_has_not_started_can_be_stopped() -> None:
    writer = FakeWriter()
    executor = Executor(writer.writer)
    executor.adopt(make_plan(plan_move(WEB, "n2"), plan_move(DB, "n2")), "plan-1", seen(executor, WEB, DB))
    await start(executor, WEB, DB)

    (stopped,) = await executor.stop(NOW, "mode is observe now")

    assert (stopped.pod.name, stopped.state, stopped.outcome) == ("db-1", MoveState.SKIPPED, "mode is observe now")
    assert [move.pod.name for move in executor.active_moves().moves] == ["web-1"]


async def test_the_lineage_counts_the_moves_in_a_row() -> None:
    executor, cooldowns = Executor(FakeWriter().writer), Cooldowns()
    old = WEB
    for generation, name in enumerate(("web-2", "web-3", "web-4"), start=1):
        heir = make_pod(name, node="n1")
        executor.adopt(make_plan(plan_move(old, "n2")), "plan", seen(executor, old))
        await start(executor, old)
        cooldowns = cooldowns.after_moves(follow(executor, heir, now=NOW + generation), SETTINGS)
        cooldowns = cooldowns.without_expired(seen(executor, heir).cluster, NOW + generation, ())
        assert cooldowns.lineage == {heir.uid: Lineage(NOW + generation, generation, old.uid)}
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


def test_what_concerns_pods_that_are_gone_is_forgotten() -> None:
    cooldowns = Cooldowns({WEB.uid: Lineage(NOW, 1), "gone": Lineage(NOW, 4), DB.uid: Lineage(NOW, 2)})
    cluster = seen(Executor(FakeWriter().writer), WEB).cluster

    assert set(cooldowns.without_expired(cluster, NOW, {DB.uid}).lineage) == {WEB.uid, DB.uid}
