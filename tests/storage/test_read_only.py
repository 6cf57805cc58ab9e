"""A store that is only read stays as it is, whoever uses it at the same time."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from storage import StorageError
from storage.lock import locked
from storage.rows import DecisionRow, MoveRow
from storage.store import Store


def files(database: Path) -> dict[str, bytes]:
    """Without the index of the write-ahead log, which holds the locks of readers."""
    return {path.name: path.read_bytes() for path in database.parent.iterdir() if not path.name.endswith("-shm")}


async def test_a_store_that_nobody_uses_is_read_without_a_trace(
    database: Path, move_row: Callable[..., MoveRow]
) -> None:
    async with await Store.open(database) as store:
        store.add_move(move_row())
    before = files(database)

    async with await Store.open(database, read_only=True) as reader:
        assert [row.id for row in await reader.open_moves()] == ["m1"]

    assert files(database) == before
    assert {path.name for path in database.parent.iterdir()} == {"rematch.db"}


async def test_rows_that_a_running_controller_has_just_written_are_seen_and_left_alone(
    database: Path, move_row: Callable[..., MoveRow]
) -> None:
    async with await Store.open(database) as store:
        store.add_move(move_row())
        await store.flush()
        before = files(database)
        async with await Store.open(database, read_only=True) as reader:
            assert [row.id for row in await reader.open_moves()] == ["m1"]
        assert files(database) == before
        store.add_move(move_row("m2"))
        assert await store.flush(), "the reader is not in the way of the controller"


async def test_what_is_added_by_mistake_is_not_written(
    database: Path, decision_row: Callable[..., DecisionRow]
) -> None:
    async with await Store.open(database) as store:
        await store.flush()
    before = files(database)
    async with await Store.open(database, read_only=True) as reader:
        reader.add_decisions(decision_row(1))
        assert not await reader.flush()
        assert "readonly" in (reader.health.error or "")
    assert files(database) == before


async def test_an_older_schema_is_not_migrated(database: Path) -> None:
    await (await Store.open(database)).close()
    connection = sqlite3.connect(database)
    connection.execute("UPDATE alembic_version SET version_num = '0001'")
    connection.commit()
    connection.close()
    before = files(database)
    with pytest.raises(StorageError, match=r"rematch\.db has the older schema 0001.*start `rematch run`"):
        await Store.open(database, read_only=True)
    assert files(database) == before


async def test_a_missing_store_is_not_made(database: Path) -> None:
    with pytest.raises(StorageError, match=r"there is no store at .*rematch\.db"):
        await Store.open(database, read_only=True)
    assert not database.parent.exists()


async def test_an_empty_file_has_no_schema(tmp_path: Path) -> None:
    database = tmp_path / "empty.db"
    database.touch()
    with pytest.raises(StorageError, match="no schema yet"):
        await Store.open(database, read_only=True)
    assert database.read_bytes() == b""


def test_one_process_holds_the_lock_and_its_end_frees_it(database: Path) -> None:
    with locked(database) as first, locked(database) as second:
        assert (first, second) == (True, False)
    with locked(database) as again:
        assert again


def test_a_store_has_one_lock_by_whatever_path_it_is_named(
    database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(database.parent))
    link = tmp_path / "link.db"
    link.symlink_to(database)
    with locked(database), locked(link) as by_link, locked(Path("~", database.name)) as by_home:
        assert (by_link, by_home) == (False, False)


def test_a_folder_that_takes_no_lock_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match="cannot be opened"), locked(tmp_path / "file" / "rematch.db"):
        pass


async def test_the_lock_does_not_keep_readers_out(database: Path) -> None:
    await (await Store.open(database)).close()
    with locked(database):
        async with asyncio.timeout(5), await Store.open(database, read_only=True) as reader:
            assert await reader.moves() == []
