from __future__ import annotations

import logging
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import Connection

from storage import StorageError
from storage.rows import ChunkRow, DecisionRow, LoadBinRow
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


async def test_a_new_file_gets_its_folder_and_the_schema(database: Path) -> None:
    assert not database.parent.exists()
    await (await Store.open(database)).close()
    assert any("CREATE TABLE usage_chunks" in line for line in _dump(database))


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


_FIRST = """
INSERT INTO happiness VALUES ('u1', 'shop', 'web', 5.0, 1.0, 100.0, '{}');
INSERT INTO decisions VALUES ('a-1', 'a', 100.0, 'wait', 'u1', 'shop/web', 'cooldown', 'moved 3 s ago', 160.0);
INSERT INTO decisions VALUES ('a-2', 'a', 100.0, 'rematch', 'u1', 'shop/web', 'unhappy', 'n1 is full', NULL);
INSERT INTO decisions VALUES ('b-1', 'b', 200.0, 'rematch', 'u1', 'shop/web', 'unhappy', 'n1 is full', NULL);
INSERT INTO decisions VALUES ('b-2', 'b', 200.0, 'rematch', 'u2', 'shop/api', 'unhappy', 'n2 is full', NULL);
INSERT INTO decisions VALUES ('d-1', 'd', 250.0, 'rematch', 'u2', 'shop/api', 'unhappy', 'n2 is full', NULL);
INSERT INTO plans VALUES ('p1', 'a', 100.0, 'stable', 'act', 'unhappy', 1, 0, 1, '{"moves": []}');
INSERT INTO plans VALUES ('p2', 'b', 200.0, 'stable', 'act', 'unhappy', 0, 0, 1, '{"moves": []}');
INSERT INTO moves VALUES ('m1', 'p1', 'u1', 'shop/web', 'shop/web', 'n1', 'n2', 'done', 101.0, 101.0, 102.0, 104.0,
    104.0, 'done', 'is Ready', 'u3');
INSERT INTO settings_revisions VALUES ('r1', 99.0, 'file', 'abc', 1, '[]', 'mode: act');
INSERT INTO meta VALUES ('cluster', 'uid of kube-system');
"""


def _make_schema(database: Path, revision: str, rows: str) -> None:
    from alembic import command
    from alembic.config import Config
    from sqlalchemy import create_engine

    database.parent.mkdir(parents=True)
    config = Config()
    config.set_main_option("script_location", "storage:migrations")
    engine = create_engine(f"sqlite:///{database}")
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, revision)
    engine.dispose()
    with sqlite3.connect(database) as filled:
        filled.executescript(rows)
    filled.close()


def _make_first_schema(database: Path) -> None:
    _make_schema(database, "0001", _FIRST)


async def test_a_store_of_the_first_schema_keeps_its_history(database: Path) -> None:
    _make_first_schema(database)
    async with await Store.open(database) as store:
        decisions, plans = await store.decisions(), await store.plans()
        (move,), (revision,), (happiness,) = await store.moves(), await store.revisions(), await store.happiness()
        store.add_decisions(DecisionRow("c-1", "c", 300.0, "wait", "u1", "shop/web", "cooldown"))
    assert [(row.id, row.kind, row.until) for row in decisions] == [
        ("d-1", "rematch", None),
        ("a-1", "wait", 160.0),
    ], "a rematch without a plan is a decision"
    assert [(row.id, row.pod_key, row.text) for row in plans] == [
        ("p2", None, "shop/web: n1 is full; shop/api: n2 is full"),
        ("p1", "shop/web", "shop/web: n1 is full"),
    ]
    assert (move.plan_id, move.at, move.cycle, move.reasons, move.outcome) == ("p1", 104.0, "", (), "done")
    assert happiness.uid == "u1"
    order = [revision.seq, decisions[1].seq, plans[1].seq, move.seq, plans[0].seq, decisions[0].seq]
    assert order == sorted(set(order))
    assert not any("meta" in line for line in _dump(database))


async def test_a_store_of_the_second_schema_keeps_its_rows_and_takes_the_new_ones(database: Path) -> None:
    happy = "INSERT INTO happiness VALUES ('u1', 'shop', 'web', 5.0, 1.0, 100.0, '{}');"
    _make_schema(database, "0002", happy)
    async with await Store.open(database) as store:
        assert [row.uid for row in await store.happiness()] == ["u1"]
        assert (await store.load_bins(), await store.startups(), await store.move_checks()) == ([], [], [])
        store.add_load_bins(LoadBinRow(0, 1.0, 0.0, 0.0, 0.0, 5.0))
        store.add_load_bins(LoadBinRow(0, 2.0, 0.0, 0.0, 0.0, 6.0))
        assert await store.flush()
        assert [row.probes for row in await store.load_bins()] == [2.0]


@pytest.mark.parametrize("revision", ["0001", "0002", "0003"])
async def test_every_released_schema_leads_here_also_from_a_full_store(database: Path, revision: str) -> None:
    rows = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 50000)"
    _make_schema(
        database,
        revision,
        f"{rows} INSERT INTO usage_samples SELECT i, 'pod', 'u' || i, 0.5, 1e8, 'prometheus' FROM n;"
        f"{rows} INSERT INTO happiness SELECT 'u' || i, 'shop', 'web-' || i, 5.0, 1.0, 100.0, '{{}}' FROM n;",
    )
    async with await Store.open(database) as store:
        assert len(await store.happiness()) == 50_000
        store.add_chunks(ChunkRow(60, 0, 0, b"usage"))
        assert await store.flush()
        assert await store.chunks(60, 0, 1) == [ChunkRow(60, 0, 0, b"usage")]
    assert not any("usage_samples" in line for line in _dump(database))


async def test_a_migrated_store_is_like_a_new_one(database: Path, tmp_path: Path) -> None:
    def schema(path: Path) -> set[tuple[object, ...]]:
        connection = sqlite3.connect(path)
        names = [
            row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'index')")
        ]
        columns = {
            (name, *row[1:4], row[5]) for name in names for row in connection.execute(f"PRAGMA table_info({name})")
        }
        connection.close()
        return columns | {(name,) for name in names}

    _make_first_schema(database)
    await (await Store.open(database)).close()
    await (await Store.open(tmp_path / "new.db")).close()
    assert schema(database) == schema(tmp_path / "new.db")


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
    with pytest.raises(StorageError, match=r"rematch\.db has schema 0042.*up to 0005; run the newer version"):
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
        ("mysql://me:secret@db/rematch", r"^mysql is not supported"),
        ("sqlite://", "would be forgotten"),
        (":memory:", "would be forgotten"),
        ("://", "cannot be read"),
    ],
)
async def test_a_path_that_is_no_file_is_a_clear_error(where: str, message: str) -> None:
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
