"""A store that cannot be used when it is opened: it says so, leaves the file as it is, and works once it can."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from storage import StorageError
from storage.limits import Limits
from storage.rows import DecisionRow
from storage.store import Store

QUICK = Limits(flush_seconds=30.0, busy_seconds=0.05)


def damaged(database: Path) -> None:
    database.parent.mkdir(parents=True)
    database.write_bytes(b"this is no database, and it is long enough to look like one" * 100)


def of_a_newer_version(database: Path) -> None:
    database.parent.mkdir(parents=True)
    with sqlite3.connect(database) as connection:
        connection.execute("CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL)")
        connection.execute("INSERT INTO alembic_version VALUES ('r9999')")
    connection.close()


def without_a_folder(database: Path) -> None:
    database.parent.write_text("a file where the folder should be")


def content(database: Path) -> bytes:
    return database.read_bytes() if database.exists() else b""


def cut_in_half(database: Path) -> bytes:
    whole = content(database)
    database.write_bytes(whole[: len(whole) // 2])
    return content(database)


def mend(database: Path) -> None:
    (database.parent if database.parent.is_file() else database).unlink()


@pytest.mark.parametrize("trouble", [damaged, of_a_newer_version, without_a_folder])
async def test_it_opens_says_why_and_works_when_the_trouble_is_over(
    trouble: Callable[[Path], None], database: Path, decision_row: Callable[..., DecisionRow]
) -> None:
    trouble(database)
    before = content(database)
    with pytest.raises(StorageError):
        await Store.open(database, QUICK)

    async with await Store.open(database, QUICK, patient=True) as store:
        assert store.health.error
        assert "r9999" in store.health.error or str(database.parent) in store.health.error
        assert not await store.flush_history(), "also when no row waits"
        store.add_decisions(decision_row(1))
        assert not await store.flush()
        with pytest.raises(StorageError):
            await store.decisions()
        with pytest.raises(StorageError):
            await store.prune(1e9)
        assert content(database) == before

        mend(database)
        assert await store.flush()
        assert store.health.ok
        assert await store.decisions() == [decision_row(1)]


async def test_a_damaged_store_is_set_aside_and_a_new_one_begins(
    database: Path, decision_row: Callable[..., DecisionRow]
) -> None:
    for number in (1, 2):
        async with await Store.open(database, QUICK, replace_damaged=True) as store:
            store.add_decisions(*map(decision_row, range(1000)))
            assert await store.flush()
        half = cut_in_half(database)
        async with await Store.open(database, QUICK, patient=True, replace_damaged=True) as store:
            kept = database.with_name(f"rematch.db.damaged-{number}")
            assert store.damaged == kept
            assert store.health.ok
            assert await store.decisions() == []
        assert content(kept) == half


async def test_a_file_of_another_kind_is_never_set_aside(database: Path) -> None:
    damaged(database)
    before = content(database)
    async with await Store.open(database, QUICK, patient=True, replace_damaged=True) as store:
        assert store.health.error
    assert content(database) == before


async def test_nothing_to_write_is_no_success_while_the_disk_refuses(
    database: Path, decision_row: Callable[..., DecisionRow]
) -> None:
    async with await Store.open(database, QUICK) as store:
        assert await store.flush_history()
        other = sqlite3.connect(database, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        store.add_decisions(decision_row(1))
        assert not await store.flush()
        other.execute("ROLLBACK")
        other.close()
        assert await store.flush_history()
        assert store.health.ok
