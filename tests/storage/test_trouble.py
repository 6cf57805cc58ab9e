"""A full or locked disk, rows that cannot be written, a process that is killed."""

from __future__ import annotations

import resource
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from storage import StorageError
from storage.limits import Limits
from storage.rows import ChunkRow, DecisionRow, HappinessRow
from storage.store import Store

IMPATIENT = Limits(flush_seconds=30.0, busy_seconds=0.05, queue_rows=100)

CHILD = """
import asyncio, sys, time
from storage.rows import DecisionRow
from storage.store import Store

async def main():
    store = await Store.open(sys.argv[1])
    number = 0
    while True:
        store.add_decisions(DecisionRow(str(number), "c", float(number), "wait", "u", "k", "r"))
        print(number, time.monotonic(), flush=True)
        number += 1
        await asyncio.sleep(0.002)

asyncio.run(main())
"""


@contextmanager
def locked(database: Path) -> Iterator[None]:
    other = sqlite3.connect(database, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        other.execute("ROLLBACK")
        other.close()


@contextmanager
def full_disk(database: Path) -> Iterator[None]:
    """No file of this process may grow beyond what the write-ahead log has now."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (database.with_name(database.name + "-wal").stat().st_size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("trouble", [locked, full_disk])
async def test_rows_wait_while_the_disk_refuses_and_are_written_afterwards(
    trouble: Callable[[Path], Iterator[None]], database: Path, decision_row: Callable[..., DecisionRow]
) -> None:
    async with await Store.open(database, IMPATIENT) as store:
        with trouble(database):  # type: ignore[attr-defined]
            store.add_decisions(decision_row(1))
            assert not await store.flush()
            assert not store.health.ok
            assert store.health.error
            assert store.health.pending == 1
            assert await store.decisions() == []
        assert await store.flush()
        assert store.health.ok
        assert await store.decisions() == [decision_row(1)]


async def test_the_writer_task_tries_again_by_itself(database: Path, decision_row: Callable[..., DecisionRow]) -> None:
    limits = Limits(flush_seconds=0.01, busy_seconds=0.01, retry_seconds=0.01)
    async with await Store.open(database, limits) as store:
        with locked(database):
            store.add_decisions(decision_row(1))
            while store.health.ok:
                await store.decisions()
        while store.health.pending or not store.health.ok:
            await store.decisions()
        assert await store.decisions() == [decision_row(1)]


async def test_the_oldest_rows_are_given_up_when_too_many_wait(
    database: Path, chunk_row: Callable[..., ChunkRow], happiness_row: Callable[..., HappinessRow]
) -> None:
    async with await Store.open(database, IMPATIENT) as store:
        with locked(database):
            store.add_happiness(happiness_row())
            for at in range(150):
                store.add_chunks(chunk_row(float(at)))
            assert not await store.flush()
            store.add_chunks(chunk_row(150.0))
            assert store.health.pending == IMPATIENT.queue_rows + 1
            assert store.health.dropped == 51
        await store.flush()
        assert [chunk.start for chunk in await store.chunks(60, 0, 200)] == list(range(51, 151))
        assert await store.happiness() == [happiness_row()], "a flood of usage pushes out nothing else"


async def test_rows_that_wait_are_replaced_by_newer_ones_not_the_other_way(
    database: Path, happiness_row: Callable[..., HappinessRow]
) -> None:
    async with await Store.open(database, IMPATIENT) as store:
        with locked(database):
            store.add_happiness(happiness_row(failures=1.0))
            assert not await store.flush()
            store.add_happiness(happiness_row(failures=2.0))
            assert not await store.flush()
        await store.flush()
        assert await store.happiness() == [happiness_row(failures=2.0)]


async def test_a_row_that_can_never_be_written_does_not_hold_up_the_others(
    store: Store, decision_row: Callable[..., DecisionRow]
) -> None:
    good = [decision_row(number) for number in range(20)]
    store.add_decisions(*good[:9], decision_row(100, at=float("nan")), *good[9:], decision_row(101, pod="\ud800"))
    assert await store.flush()
    assert store.health.refused == 2
    assert store.health.refusal
    assert sorted(row.at for row in await store.decisions()) == [row.at for row in good]


async def test_closing_on_a_locked_database_ends_and_reports_unwritten_rows(
    database: Path, decision_row: Callable[..., DecisionRow]
) -> None:
    store = await Store.open(database, IMPATIENT)
    with locked(database):
        store.add_decisions(decision_row(1))
        await store.close()
    assert store.health.pending == 1
    assert store.health.error


async def test_maintenance_on_a_locked_database_is_a_clear_error(database: Path) -> None:
    async with await Store.open(database, IMPATIENT) as store:
        with locked(database), pytest.raises(StorageError, match=r"rematch\.db cannot be used: database is locked"):
            await store.prune(1e9)


def _write_for_two_seconds_and_be_killed(database: Path) -> list[tuple[int, float]]:
    """The number and time of every row that was added."""
    with subprocess.Popen([sys.executable, "-c", CHILD, str(database)], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout
        added = [child.stdout.readline()]
        while time.monotonic() < float(added[0].split()[1]) + 2.0:
            added.append(child.stdout.readline())
        child.send_signal(signal.SIGKILL)
        added += child.stdout.readlines()
    pairs = [line.split() for line in added if line.endswith("\n")]
    return [(int(number), float(moment)) for number, moment in pairs]


async def test_a_killed_process_loses_at_most_the_last_second(database: Path) -> None:
    added = _write_for_two_seconds_and_be_killed(database)
    async with await Store.open(database) as store:
        kept = sorted(int(row.id) for row in await store.decisions(limit=100_000))
    assert len(kept) > 100
    assert kept == list(range(len(kept))), "rows are written in the order they were added"
    lost = [moment for number, moment in added if number >= len(kept)]
    assert all(moment > added[-1][1] - 1.0 for moment in lost)
    check = sqlite3.connect(database)
    assert check.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    check.close()
