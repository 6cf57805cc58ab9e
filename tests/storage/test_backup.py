"""A backup of a store in use, restored into an empty place."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

import pytest

from storage import StorageError
from storage.backup import backup, restore
from storage.lock import locked
from storage.rows import MoveRow
from storage.store import Store


def row(number: int) -> MoveRow:
    return MoveRow(f"m{number}", None, f"u{number}", "default/web", "w", "n1", "n2", "done", float(number))


async def test_a_store_in_use_is_saved_and_restored_into_an_empty_place(tmp_path: Path) -> None:
    path, saved, again = tmp_path / "rematch.db", tmp_path / "saved.db", tmp_path / "new" / "place" / "rematch.db"
    async with await Store.open(path) as store:
        for number in range(300):
            store.add_move(row(number))
        await store.flush()
        written = await asyncio.to_thread(backup, path, saved)
        assert written >= 300
        store.add_move(row(1000))
    await asyncio.to_thread(restore, saved, again)
    async with await Store.open(again) as restored:
        assert sorted(found.id for found in await restored.moves(1000)) == sorted(f"m{n}" for n in range(300))
        restored.add_move(row(2000))
        assert await restored.flush()
    assert not again.with_name("rematch.db.unfinished").exists()


async def test_while_rows_are_written_the_copy_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "rematch.db"
    async with await Store.open(path) as store:
        for attempt in range(5):
            for number in range(500):
                store.add_move(row(attempt * 500 + number))
            saving = asyncio.create_task(asyncio.to_thread(backup, path, tmp_path / f"saved-{attempt}.db"))
            await store.flush()
            assert await saving >= attempt * 500


async def test_nothing_is_overwritten_without_force(tmp_path: Path) -> None:
    path, saved = tmp_path / "rematch.db", tmp_path / "saved.db"
    async with await Store.open(path) as store:
        store.add_move(row(1))
    backup(path, saved)
    with pytest.raises(StorageError, match=r"saved\.db exists.*--force"):
        backup(path, saved)
    with pytest.raises(StorageError, match=r"rematch\.db exists.*--force"):
        restore(saved, path)
    async with await Store.open(path) as store:
        store.add_move(row(2))
    restore(saved, path, force=True)
    async with await Store.open(path, read_only=True) as store:
        assert [found.id for found in await store.moves()] == ["m1"]


async def test_a_store_in_use_is_never_replaced(tmp_path: Path) -> None:
    path, saved = tmp_path / "rematch.db", tmp_path / "saved.db"
    async with await Store.open(path) as store:
        store.add_move(row(1))
    backup(path, saved)
    with locked(path) as alone:
        assert alone
        with pytest.raises(StorageError, match="is used by another Rematch process; stop it first"):
            restore(saved, path, force=True)


def test_what_is_no_store_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    other, text, target = tmp_path / "other.db", tmp_path / "text.db", tmp_path / "rematch.db"
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE t (x)")
    connection.close()
    text.write_text("not a database, but longer than a header of one hundred bytes" * 10)
    for file, why in ((other, "no store of Rematch"), (text, "not a database")):
        with pytest.raises(StorageError, match=why):
            restore(file, target)
    with pytest.raises(StorageError, match="there is no store at"):
        backup(tmp_path / "none.db", target)
    assert not target.exists()
