from __future__ import annotations

import asyncio
import dataclasses
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

from sqlalchemy import delete

from storage import tables
from storage.limits import Limits
from storage.place import Place
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
    Row,
    SeriesRow,
    StartupRow,
    UsageEventRow,
)
from storage.store import Store

REFUSED = RevisionRow("r1", 5.0, "file", "abc", False, (("happiness.threshold", "must be between 0 and 1"),), "text")
SERIES = SeriesRow(7, "pod", "shop/web", 0, 60.0)
JUDGED = MoveCheckRow("m1", "p1", "uid-2", "n2", 9.0, 0.01, 0.02, True)


async def test_a_restart_keeps_every_kind_of_row(
    place: Place,
    happiness_row: Callable[..., HappinessRow],
    chunk_row: Callable[..., ChunkRow],
    decision_row: Callable[..., DecisionRow],
    plan_row: Callable[..., PlanRow],
    move_row: Callable[..., MoveRow],
) -> None:
    async with await Store.open(place) as store:
        store.add_move(move_row(plan_id="p1"))
        store.add_plan(plan_row("p1"))
        store.add_happiness(happiness_row())
        store.add_chunks(chunk_row(1.0))
        store.add_series(SERIES)
        store.add_usage_events(UsageEventRow(2.0, "node", "n1", "not Ready"))
        store.add_decisions(decision_row(1))
        store.add_revision(REFUSED)
        store.add_problem(ProblemRow("p1", b"compressed"))
        store.add_load_bins(LoadBinRow(19, 100.0, 3.0, 97.5, 2.5, 9.0))
        store.add_startups(StartupRow("shop/ReplicaSet/web", 9.0, (3.5, 4.0)))
        store.add_move_checks(JUDGED)
    async with await Store.open(place) as store:
        assert await store.moves() == [move_row(plan_id="p1")]
        assert await store.plan("p1") == plan_row("p1")
        assert await store.happiness() == [happiness_row()]
        assert await store.chunks(60, 0.0, 2.0) == [chunk_row(1.0)]
        assert await store.series() == [SERIES]
        assert await store.usage_events("node", "n1", 0.0, 9.0) == [UsageEventRow(2.0, "node", "n1", "not Ready")]
        assert await store.decisions() == [decision_row(1)]
        assert await store.revisions() == [REFUSED]
        assert await store.problem("p1") == ProblemRow("p1", b"compressed")
        assert await store.problem("p2") is None
        assert await store.load_bins() == [LoadBinRow(19, 100.0, 3.0, 97.5, 2.5, 9.0)]
        assert await store.startups() == [StartupRow("shop/ReplicaSet/web", 9.0, (3.5, 4.0))]
        assert await store.move_checks() == [JUDGED]


async def test_rows_are_written_within_a_second_without_a_flush(
    place: Place, happiness_row: Callable[..., HappinessRow]
) -> None:
    async with await Store.open(place, Limits(flush_seconds=0.01)) as store:
        store.add_happiness(happiness_row())
        deadline = time.monotonic() + 5
        while store.health.pending and time.monotonic() < deadline:
            await store.happiness()
        assert await store.happiness() == [happiness_row()]
    assert Limits().flush_seconds <= 1


async def test_the_newest_happiness_of_a_pod_replaces_the_older(
    store: Store, happiness_row: Callable[..., HappinessRow]
) -> None:
    store.add_happiness(happiness_row(failures=1.0))
    await store.flush()
    store.add_happiness(happiness_row(failures=2.0), happiness_row(failures=3.0))
    await store.flush()
    assert await store.happiness() == [happiness_row(failures=3.0)]


async def test_decisions_are_found_newest_first_by_pod(store: Store, decision_row: Callable[..., DecisionRow]) -> None:
    rows = [decision_row(number, pod=("web", "api")[number % 2]) for number in range(10)]
    store.add_decisions(*rows)
    await store.flush()
    assert await store.decisions(limit=3) == rows[:-4:-1]
    assert await store.decisions(pod="shop/api") == rows[9::-2]
    assert await store.decisions(waits=False) == []


async def test_pages_of_history_are_cut_by_a_number_that_grows_with_time(
    place: Place,
    decision_row: Callable[..., DecisionRow],
    plan_row: Callable[..., PlanRow],
    move_row: Callable[..., MoveRow],
) -> None:
    async with await Store.open(place) as store:
        store.add_revision(dataclasses.replace(REFUSED, at=1.0))
        store.add_decisions(*(decision_row(number, at=1.0) for number in range(5)))
        store.add_plan(plan_row("p1", at=1.0))
        store.add_move(move_row("m1", at=1.0))
    async with await Store.open(place) as store:
        store.add_decisions(decision_row(9, at=2.0))
        store.add_move(move_row("m1", at=2.0))
        await store.flush()
        first = await store.decisions(limit=2)
        older = await store.decisions(before=first[-1].seq)
        (plan,), (move,), (revision,) = await store.plans(), await store.moves(), await store.revisions()
        assert await store.plans(before=plan.seq) == []
        assert await store.moves(before=move.seq) == []
        assert await store.revisions(before=revision.seq) == []
    assert [row.id for row in (*first, *older)] == ["d9", "d4", "d3", "d2", "d1", "d0"]
    assert [revision.seq, *(row.seq for row in reversed(older)), first[1].seq, plan.seq, first[0].seq, move.seq] == [
        *(1_000_000 + number for number in range(7)),
        2_000_000,
        2_000_001,
    ], "a changed move is the newest again"


async def test_plans_are_found_newest_first_by_the_pods_they_name(
    store: Store, plan_row: Callable[..., PlanRow]
) -> None:
    store.add_plan(plan_row("p1", at=1.0, pod="shop/web"))
    store.add_plan(plan_row("p2", at=2.0, pod="shop/api"))
    await store.flush()
    assert [plan.id for plan in await store.plans()] == ["p2", "p1"]
    assert await store.plans(limit=1) == [plan_row("p2", at=2.0, pod="shop/api")]
    assert await store.plans(pod="shop/web") == [plan_row("p1", at=1.0, pod="shop/web")]
    assert await store.plans(pod="shop/we") == []
    assert await store.plan_times(2.0) == [2.0]
    assert await store.plan("p3") is None


async def test_moves_and_the_plans_they_come_from_are_counted(
    store: Store, plan_row: Callable[..., PlanRow], move_row: Callable[..., MoveRow]
) -> None:
    for number in (1, 2, 3):
        store.add_plan(plan_row(f"p{number}", at=float(number)))
    store.add_move(dataclasses.replace(move_row("m1", "p1", ended=9.0), outcome="done"))
    store.add_move(dataclasses.replace(move_row("m2", "p1", ended=9.0), outcome="failed"))
    store.add_move(dataclasses.replace(move_row("m3", "p2"), state="planned"))
    await store.flush()
    assert (await store.count_moves("done"), await store.count_plans_with_moves()) == (1, 2)
    assert {move.id for move in await store.moves(begun=True)} == {"m1", "m2"}


async def test_the_version_grows_when_readers_can_see_more(
    store: Store, decision_row: Callable[..., DecisionRow]
) -> None:
    before = store.version
    store.add_decisions(decision_row(1))
    assert store.version == before
    await store.flush()
    assert store.version > before
    seen = store.version
    await store.flush()
    assert store.version == seen


async def test_a_move_is_kept_even_when_its_plan_is_not_there(store: Store, move_row: Callable[..., MoveRow]) -> None:
    store.add_move(move_row(plan_id="lost"))
    assert await store.flush()
    assert await store.moves() == [move_row(plan_id=None)]


async def test_the_history_need_not_wait_for_the_usage(
    place: Place, move_row: Callable[..., MoveRow], chunk_row: Callable[..., ChunkRow]
) -> None:
    async with await Store.open(place, Limits(flush_seconds=3600.0)) as store:
        store.add_chunks(chunk_row(1.0))
        store.add_move(move_row(plan_id=None))
        assert await store.flush_history()
        assert await store.moves() == [move_row(plan_id=None)]
        assert store.health.pending == 1


async def test_open_moves_can_be_abandoned(store: Store, move_row: Callable[..., MoveRow]) -> None:
    store.add_move(move_row("m1", ended=150.0))
    store.add_move(move_row("m2"))
    assert await store.abandon_open_moves(200.0, "the controller was restarted") == 1
    assert await store.open_moves() == []
    assert {move.id: (move.ended, move.outcome, move.text) for move in await store.moves()} == {
        "m1": (150.0, "", ""),
        "m2": (200.0, "abandoned", "the controller was restarted"),
    }


async def test_write_ahead_log_and_foreign_keys_are_on(database: Path) -> None:
    async with await Store.open(f"sqlite:///{database}") as store:
        async with store._engine.connect() as connection:
            assert (await connection.exec_driver_sql("PRAGMA foreign_keys")).scalar_one() == 1
        with sqlite3.connect(database) as other:
            assert other.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        other.close()


async def test_a_reader_is_not_stopped_by_a_writer(store: Store, decision_row: Callable[..., DecisionRow]) -> None:
    store.add_decisions(decision_row(1))
    await store.flush()
    async with store._writer.transaction() as connection:
        await connection.execute(delete(tables.decisions))
        assert await store.decisions() == [decision_row(1)]
    assert await store.decisions() == []


async def test_ten_thousand_rows_are_written_at_once(
    store: Store, chunk_row: Callable[..., ChunkRow], happiness_row: Callable[..., HappinessRow]
) -> None:
    store.add_happiness(*(happiness_row(f"uid-{number}") for number in range(10_000)))
    store.add_chunks(*(chunk_row(number // 1000, number % 1000) for number in range(5_000)))
    assert await store.flush()
    assert len(await store.happiness()) == 10_000
    assert len(await store.chunks(60, 0.0, 10.0)) == 5_000
    assert len(await store.chunks(60, 3.0, 10.0, [5, 17])) == 4
    assert await store.chunks(300, 0.0, 10.0) == []


def test_the_fields_of_a_row_are_the_columns_of_its_table() -> None:
    pairs: list[tuple[type[Row], object]] = [
        (HappinessRow, tables.happiness),
        (SeriesRow, tables.usage_series),
        (ChunkRow, tables.usage_chunks),
        (UsageEventRow, tables.usage_events),
        (DecisionRow, tables.decisions),
        (PlanRow, tables.plans),
        (ProblemRow, tables.problems),
        (MoveRow, tables.moves),
        (RevisionRow, tables.settings_revisions),
        (LoadBinRow, tables.probes_by_load),
        (StartupRow, tables.startup_times),
        (MoveCheckRow, tables.move_checks),
    ]
    for row_type, table in pairs:
        columns = [column.key for column in tables.metadata.tables[str(table)].columns]
        assert [field.name for field in dataclasses.fields(row_type)] == columns


async def test_look_ups_do_not_delay_a_record(place: Place, plan_row: Callable[..., PlanRow]) -> None:
    """Each look-up searches long documents. While 60 of them run and wait, a row is written at once."""
    document = '{"moves": [' + ",".join(['{"pod": "shop/other"}'] * 20_000) + "]}"
    async with await Store.open(place) as store:
        for number in range(20):
            store.add_plan(dataclasses.replace(plan_row(f"p{number}"), document=document))
        assert await store.flush()
        look_ups = [asyncio.create_task(store.plans(pod=f"shop/web-{number}")) for number in range(60)]
        await asyncio.sleep(0)
        store.add_plan(plan_row("last"))
        assert await store.flush_history()
        waiting = sum(not each.done() for each in look_ups)
        await asyncio.gather(*look_ups)
    assert waiting >= 40
