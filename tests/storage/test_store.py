from __future__ import annotations

import dataclasses
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

from storage.limits import Limits
from storage.rows import (
    DecisionRow,
    HappinessRow,
    MetaRow,
    MoveRow,
    PlanRow,
    PlanSummary,
    RevisionRow,
    Row,
    SampleRow,
)
from storage.store import Store

REFUSED = RevisionRow("r1", 5.0, "file", "abc", False, (("happiness.threshold", "must be between 0 and 1"),), "text")


async def test_a_restart_keeps_every_kind_of_row(
    database: Path,
    happiness_row: Callable[..., HappinessRow],
    sample_row: Callable[..., SampleRow],
    decision_row: Callable[..., DecisionRow],
    plan_row: Callable[..., PlanRow],
    move_row: Callable[..., MoveRow],
) -> None:
    async with await Store.open(database) as store:
        store.add_move(move_row(plan_id="p1"))
        store.add_plan(plan_row("p1"))
        store.add_happiness(happiness_row())
        store.add_samples(sample_row(1.0))
        store.add_decisions(decision_row(1))
        store.add_revision(REFUSED)
        store.add_meta(MetaRow("cluster", "uid of kube-system"))
    async with await Store.open(f"sqlite:///{database}") as store:
        assert await store.moves() == [move_row(plan_id="p1")]
        assert await store.plan("p1") == plan_row("p1")
        assert await store.happiness() == [happiness_row()]
        assert await store.samples(0.0, "pod") == [sample_row(1.0)]
        assert await store.decisions() == [decision_row(1)]
        assert await store.revisions() == [REFUSED]
        assert await store.meta("cluster") == "uid of kube-system"
        assert await store.meta("unknown") is None


async def test_rows_are_written_without_being_asked_within_a_second(
    database: Path, happiness_row: Callable[..., HappinessRow]
) -> None:
    async with await Store.open(database, Limits(flush_seconds=0.01)) as store:
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


async def test_decisions_are_found_newest_first_by_pod_and_time(
    store: Store, decision_row: Callable[..., DecisionRow]
) -> None:
    rows = [decision_row(number, pod=("web", "api")[number % 2]) for number in range(10)]
    store.add_decisions(*rows)
    await store.flush()
    assert await store.decisions(limit=3) == rows[:-4:-1]
    assert await store.decisions(pod="shop/api") == rows[9::-2]
    assert await store.decisions(pod="uid-web", since=4.0) == [rows[8], rows[6], rows[4]]


async def test_plans_are_listed_without_their_documents(store: Store, plan_row: Callable[..., PlanRow]) -> None:
    store.add_plan(plan_row("p1", at=1.0, pod="shop/web"))
    store.add_plan(plan_row("p2", at=2.0, pod="shop/api"))
    await store.flush()
    assert await store.plans(limit=1) == [PlanSummary("p2", "c1", 2.0, "stable", "act", "happiness", 1, 0, True)]
    assert await store.last_plan_for("shop/web") == plan_row("p1", at=1.0, pod="shop/web")
    assert await store.last_plan_for("uid of shop/api") == plan_row("p2", at=2.0, pod="shop/api")
    assert await store.last_plan_for("shop/we") is None
    assert await store.plan("p3") is None


async def test_a_move_is_kept_even_when_its_plan_is_not_there(store: Store, move_row: Callable[..., MoveRow]) -> None:
    store.add_move(move_row(plan_id="lost"))
    assert await store.flush()
    assert await store.moves() == [move_row(plan_id=None)]


async def test_moves_need_not_wait_for_the_samples(
    database: Path, move_row: Callable[..., MoveRow], sample_row: Callable[..., SampleRow]
) -> None:
    async with await Store.open(database, Limits(flush_seconds=3600.0)) as store:
        store.add_samples(sample_row(1.0))
        store.add_move(move_row(plan_id=None))
        assert await store.flush_moves()
        assert await store.moves() == [move_row(plan_id=None)]
        assert store.health.pending == 1


async def test_open_moves_can_be_abandoned(store: Store, move_row: Callable[..., MoveRow]) -> None:
    store.add_move(move_row("m1", ended=150.0))
    store.add_move(move_row("m2"))
    assert await store.abandon_open_moves(200.0, "the controller was restarted") == 1
    assert await store.moves(open_only=True) == []
    assert {move.id: (move.ended, move.outcome, move.text) for move in await store.moves()} == {
        "m1": (150.0, "", ""),
        "m2": (200.0, "abandoned", "the controller was restarted"),
    }


async def test_write_ahead_log_and_foreign_keys_are_on(database: Path, store: Store) -> None:
    async with store._engine.connect() as connection:
        assert (await connection.exec_driver_sql("PRAGMA foreign_keys")).scalar_one() == 1
    with sqlite3.connect(database) as other:
        assert other.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    other.close()


async def test_a_reader_is_not_stopped_by_a_writer(
    database: Path, store: Store, decision_row: Callable[..., DecisionRow]
) -> None:
    store.add_decisions(decision_row(1))
    await store.flush()
    writer = sqlite3.connect(database, isolation_level=None)
    writer.execute("BEGIN IMMEDIATE")
    writer.execute("DELETE FROM decisions")
    assert await store.decisions() == [decision_row(1)]
    writer.execute("COMMIT")
    writer.close()
    assert await store.decisions() == []


async def test_ten_thousand_rows_are_written_quickly(store: Store, sample_row: Callable[..., SampleRow]) -> None:
    store.add_samples(*(sample_row(float(number // 1000), f"uid-{number % 1000}") for number in range(10_000)))
    started = time.monotonic()
    assert await store.flush()
    assert time.monotonic() - started < 5, "measured 0.1 s on a quiet machine"
    assert len(await store.samples(0.0, "pod")) == 10_000
    assert len(await store.samples(5.0, "pod")) == 5_000
    assert await store.samples(0.0, "node") == []


def test_the_fields_of_a_row_are_the_columns_of_its_table() -> None:
    from storage import tables

    pairs: list[tuple[type[Row], object]] = [
        (HappinessRow, tables.happiness),
        (SampleRow, tables.usage_samples),
        (DecisionRow, tables.decisions),
        (PlanRow, tables.plans),
        (MoveRow, tables.moves),
        (RevisionRow, tables.settings_revisions),
        (MetaRow, tables.meta),
    ]
    for row_type, table in pairs:
        columns = [column.name for column in tables.metadata.tables[str(table)].columns]
        assert [field.name for field in dataclasses.fields(row_type)] == columns
