from __future__ import annotations

import logging
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import Connection

from storage.errors import StorageError
from storage.rows import DecisionRow
from storage.store import Store


def _dump(database: Path) -> list[str]:
    connection = sqlite3.connect(database)
    lines = list(connection.iterdump())
    connection.close()
    return lines


def _cut_in_half(database: Path) -> bytes:
    whole = database.read_bytes()
    database.write_bytes(whole[: len(whole) // 2])
    return database.read_bytes()


async def test_an_empty_place_gets_the_schema_and_its_folder(database: Path) -> None:
    assert not database.parent.exists()
    await (await Store.open(database)).close()
    assert any("CREATE TABLE usage_samples" in line for line in _dump(database))


async def test_opening_again_changes_nothing(database: Path) -> None:
    await (await Store.open(database)).close()
    once = _dump(database)
    await (await Store.open(database)).close()
    assert _dump(database) == once


async def test_migrations_lead_to_the_tables_that_the_code_uses(store: Store) -> None:
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext

    from storage.tables import metadata

    def differences(connection: Connection) -> list[object]:
        return list(compare_metadata(MigrationContext.configure(connection), metadata))

    async with store._engine.connect() as connection:
        assert await connection.run_sync(differences) == []


async def test_an_interrupted_migration_leaves_nothing_behind(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from alembic import op

    def fail(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(op, "create_index", fail)
    with pytest.raises(KeyboardInterrupt):
        await Store.open(database)
    assert not any("CREATE TABLE" in line for line in _dump(database))
    monkeypatch.undo()
    await (await Store.open(database)).close()


async def test_a_newer_schema_is_refused_with_both_versions_and_the_way_out(database: Path) -> None:
    await (await Store.open(database)).close()
    connection = sqlite3.connect(database)
    connection.execute("UPDATE alembic_version SET version_num = '0042'")
    connection.commit()
    connection.close()
    before = _dump(database)
    with pytest.raises(StorageError, match=r"rematch\.db has schema 0042.*up to 0001; run the newer version"):
        await Store.open(database)
    assert _dump(database) == before


async def test_the_database_of_another_program_is_left_alone(tmp_path: Path) -> None:
    database = tmp_path / "other.db"
    connection = sqlite3.connect(database)
    connection.execute("CREATE TABLE bookmarks (url TEXT)")
    connection.commit()
    connection.close()
    before = database.read_bytes()
    with pytest.raises(StorageError, match=r"other\.db is the database of another program"):
        await Store.open(database)
    assert database.read_bytes() == before


async def test_a_file_that_is_no_database_is_refused_and_kept(tmp_path: Path) -> None:
    database = tmp_path / "notes.db"
    database.write_bytes(b"dear diary, " * 1000)
    with pytest.raises(StorageError, match=r"notes\.db is damaged or no SQLite database"):
        await Store.open(database)
    assert database.read_bytes() == b"dear diary, " * 1000


async def test_a_half_written_database_is_refused_and_kept(
    database: Path, decision_row: Callable[..., DecisionRow]
) -> None:
    async with await Store.open(database) as store:
        store.add_decisions(*map(decision_row, range(1000)))
    half = _cut_in_half(database)
    with pytest.raises(StorageError, match=r"rematch\.db is damaged .*nothing was changed"):
        await Store.open(database)
    with database.open("rb") as kept:
        assert kept.read() == half


async def test_a_folder_is_no_database(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="cannot be used"):
        await Store.open(tmp_path)


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("postgresql://me:secret@db/rematch", r"^postgresql is not supported yet"),
        ("sqlite://", "would be forgotten"),
        (":memory:", "would be forgotten"),
        ("://", "cannot be read"),
    ],
)
async def test_a_place_that_is_no_file_is_a_clear_error(where: str, message: str) -> None:
    with pytest.raises(StorageError, match=message) as caught:
        await Store.open(where)
    assert "secret" not in str(caught.value)


async def test_migrating_leaves_the_logging_configuration_alone(database: Path) -> None:
    root = logging.getLogger()
    before = (root.level, list(root.handlers), logging.getLogger("alembic").level)
    await (await Store.open(database)).close()
    assert (root.level, list(root.handlers), logging.getLogger("alembic").level) == before


def test_importing_the_store_does_not_import_alembic() -> None:
    code = "import sys, storage.store; sys.exit('alembic' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=30).returncode == 0
