from __future__ import annotations

from collections.abc import Callable

import pytest

from storage import retention
from storage.retention import Retention
from storage.rows import (
    ChunkRow,
    DecisionRow,
    HappinessRow,
    LoadBinRow,
    MoveCheckRow,
    MoveRow,
    PlanRow,
    ProblemRow,
    RevisionRow,
    SeriesKind,
    SeriesRow,
    StartupRow,
    UsageEventRow,
)
from storage.store import Store

HOUR = 3600.0
DAY = 24 * HOUR


async def test_minutes_are_kept_for_six_hours_and_roll_ups_longer(
    store: Store, chunk_row: Callable[..., ChunkRow], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "CHUNK_ROWS", 7)
    hours = [(hour, block) for hour in range(24) for block in range(5)]
    store.add_chunks(*(chunk_row(hour * HOUR, block, step) for hour, block in hours for step in (60, 300, 3600)))
    await store.flush()
    assert await store.prune(23 * HOUR) == 17 * 5
    assert {chunk.start for chunk in await store.chunks(60, 0, DAY)} == {hour * HOUR for hour in range(17, 24)}
    assert await store.prune(23 * HOUR) == 0
    assert await store.prune(23 * HOUR + 30 * DAY) == 7 * 5 + 23 * 5
    assert len(await store.chunks(3600, 0, DAY)) == 24 * 5


async def test_pods_that_are_gone_are_forgotten_before_nodes_and_workloads(store: Store) -> None:
    kinds: tuple[SeriesKind, ...] = ("pod", "node", "workload")
    store.add_series(*(SeriesRow(number, kind, "a", 0, 0.0) for number, kind in enumerate(kinds)))
    store.add_usage_events(UsageEventRow(0.0, "node", "a", "added"))
    await store.flush()
    assert await store.prune(32 * DAY) == 1
    assert [row.kind for row in await store.series()] == ["node", "workload"]
    assert await store.prune(92 * DAY) == 3


async def test_old_records_are_deleted_unless_open_or_in_force(
    store: Store,
    happiness_row: Callable[..., HappinessRow],
    plan_row: Callable[..., PlanRow],
    move_row: Callable[..., MoveRow],
) -> None:
    store.add_happiness(happiness_row("gone", at=0.0), happiness_row("alive", at=10 * DAY))
    for name in ("of an open move", "of a finished move", "without moves"):
        store.add_plan(plan_row(name, at=0.0))
    store.add_move(move_row("open", "of an open move"))
    store.add_move(move_row("finished", "of a finished move", ended=1.0))
    for number, accepted in enumerate([True, True, False]):
        store.add_revision(RevisionRow(f"r{number}", float(number), "file", f"digest {number}", accepted))
    await store.flush()
    assert await store.prune(10 * DAY) == 6
    assert [row.uid for row in await store.happiness()] == ["alive"]
    assert [row.id for row in await store.plans()] == ["of an open move"]
    assert await store.moves() == [move_row("open", "of an open move")]
    assert [row.id for row in await store.revisions()] == ["r1"]


async def test_a_move_has_no_plan_after_its_plan_is_pruned(
    store: Store, plan_row: Callable[..., PlanRow], move_row: Callable[..., MoveRow]
) -> None:
    store.add_plan(plan_row("p1", at=0.0))
    store.add_move(move_row(plan_id="p1", ended=10 * DAY))
    await store.flush()
    assert await store.prune(10 * DAY) == 1
    assert await store.moves() == [move_row(plan_id=None, ended=10 * DAY)]


async def test_only_so_many_plans_and_decisions_are_kept(
    store: Store, plan_row: Callable[..., PlanRow], decision_row: Callable[..., DecisionRow]
) -> None:
    store.add_decisions(*map(decision_row, range(10)))
    for number in range(10):
        store.add_plan(plan_row(f"p{number}", at=float(number)))
    await store.flush()
    assert await store.prune(10.0, Retention(decisions=4, plans=3)) == 13
    assert [row.id for row in await store.decisions()] == ["d9", "d8", "d7", "d6"]
    assert [row.id for row in await store.plans()] == ["p9", "p8", "p7"]


async def test_what_was_learned_outlives_the_history(store: Store) -> None:
    store.add_load_bins(LoadBinRow(3, 10.0, 0.0, 1.5, 0.0, 0.0))
    store.add_startups(*(StartupRow(f"shop/ReplicaSet/web-{at}", float(at), (2.0,)) for at in range(5)))
    store.add_move_checks(
        MoveCheckRow("old", "p1", "u1", "n1", 0.0, 0.1), MoveCheckRow("new", "p2", "u2", "n1", 9 * DAY, 0.1)
    )
    await store.flush()
    assert await store.prune(10 * DAY, Retention(startups=3)) == 3
    assert [row.bin for row in await store.load_bins()] == [3]
    assert [row.at for row in await store.startups()] == [2.0, 3.0, 4.0]
    assert [row.move_id for row in await store.move_checks()] == ["new"]


async def test_problems_are_kept_for_fewer_plans(store: Store, plan_row: Callable[..., PlanRow]) -> None:
    for number in range(5):
        store.add_plan(plan_row(f"p{number}", at=float(number)))
        store.add_problem(ProblemRow(f"p{number}", b"compressed"))
    await store.flush()
    assert await store.prune(10.0, Retention(plans=4, problems=2)) == 3, "a plan and two problems, one goes with it"
    kept = [number for number in range(5) if await store.problem(f"p{number}")]
    assert kept == [3, 4]


async def test_writing_goes_on_while_old_rows_are_pruned(
    store: Store, chunk_row: Callable[..., ChunkRow], decision_row: Callable[..., DecisionRow]
) -> None:
    import asyncio

    for number in range(3):  # as many as may wait at once
        store.add_chunks(*(chunk_row(number, block) for block in range(retention.CHUNK_ROWS)))
        await store.flush()
    pruned = asyncio.create_task(store.prune(DAY))
    store.add_decisions(decision_row(1, at=DAY))
    assert await store.flush()
    assert await pruned == retention.CHUNK_ROWS * 3
    assert await store.decisions() == [decision_row(1, at=DAY)]
