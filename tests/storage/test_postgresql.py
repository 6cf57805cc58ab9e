"""What only a server can do to a store: be away, restart, freeze, refuse; and what a URL may show."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest
from sqlalchemy import text

from loadtests.postgresql import PASSWORD, PostgresqlServer, postgresql_server
from storage import StorageError
from storage.backup import backup
from storage.limits import Limits
from storage.lock import locked
from storage.place import PostgresqlSchema, locate
from storage.rows import ChunkRow, DecisionRow
from storage.store import Store

QUICK = Limits(flush_seconds=0.05, busy_seconds=2.0, call_seconds=5.0, retry_seconds=0.05)
PATIENT = Limits(flush_seconds=30.0, busy_seconds=2.0, call_seconds=5.0)

CHILD = """
import asyncio, sys
from storage.place import locate
from storage.rows import DecisionRow
from storage.store import Store

async def main():
    store = await Store.open(locate(sys.stdin.readline().strip(), sys.argv[1]))
    number = 0
    while True:
        store.add_decisions(DecisionRow(str(number), "c", float(number), "wait", "u", "k", "r"))
        print(number, asyncio.get_running_loop().time(), flush=True)
        number += 1
        await asyncio.sleep(0.002)

asyncio.run(main())
"""


@pytest.fixture
def own_server(server: PostgresqlServer) -> Iterator[PostgresqlServer]:
    """One that a test may stop; `server` says whether there can be one. It has its tables: to make them takes longer
    than the limits of some tests on a busy machine."""
    with postgresql_server() as started:
        asyncio.run(make_tables(started))
        yield started


async def make_tables(server: PostgresqlServer) -> None:
    async with await Store.open(at(server), Limits(call_seconds=60.0)):
        pass


def at(server: PostgresqlServer, schema: str = "rematch") -> PostgresqlSchema:
    found = locate(server.url(), schema)
    assert isinstance(found, PostgresqlSchema)
    return found


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGQUIT])
async def test_a_restart_of_the_server_loses_nothing_that_waited(
    own_server: PostgresqlServer, how: signal.Signals, decision_row: Callable[..., DecisionRow]
) -> None:
    async with await Store.open(at(own_server), QUICK) as store:
        store.add_decisions(decision_row(1))
        assert await store.flush()
        own_server.stop(how)
        store.add_decisions(decision_row(2))
        assert not await store.flush_history(), "nothing may be evicted meanwhile"
        assert store.health.error
        with pytest.raises(StorageError, match="cannot be used"):
            await store.decisions()
        own_server.start()
        deadline = time.monotonic() + 20
        while not store.health.ok or store.health.pending:
            assert time.monotonic() < deadline
            await asyncio.sleep(0.05)
        assert [row.id for row in await store.decisions()] == ["d2", "d1"]
        with locked(at(own_server)) as alone:
            assert not alone, "the lock came back with the connection"


async def test_a_server_that_does_not_answer_is_given_up_in_time(
    own_server: PostgresqlServer, decision_row: Callable[..., DecisionRow]
) -> None:
    limits = Limits(flush_seconds=30.0, busy_seconds=2.0, call_seconds=1.0)
    async with await Store.open(at(own_server), limits) as store:
        store.add_decisions(decision_row(1))
        own_server.freeze()
        try:
            began = time.monotonic()
            assert not await store.flush()
            assert time.monotonic() - began < 20
            assert not store.health.ok
        finally:
            own_server.thaw()
        while not await store.flush():
            await asyncio.sleep(0.1)
        assert [row.id for row in await store.decisions()] == ["d1"]


async def test_a_controller_starts_without_its_server_and_records_when_it_is_there(
    own_server: PostgresqlServer, decision_row: Callable[..., DecisionRow]
) -> None:
    own_server.stop()
    with pytest.raises(StorageError, match=r"Connection refused.*check host, port, network and the server"):
        await Store.open(at(own_server), PATIENT)
    async with await Store.open(at(own_server), PATIENT, patient=True) as store:
        assert "Connection refused" in (store.health.error or "")
        store.add_decisions(decision_row(1))
        assert not await store.flush()
        own_server.start()
        assert await store.flush()
        assert [row.id for row in await store.decisions()] == ["d1"]


def write_for_two_seconds_and_be_killed(schema: PostgresqlSchema) -> list[tuple[int, float]]:
    """The number and time of every row that was added."""
    command = [sys.executable, "-c", CHILD, schema.schema]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdin
        assert child.stdout
        child.stdin.write(schema.url.render_as_string(hide_password=False) + "\n")
        child.stdin.flush()
        added = [child.stdout.readline()]
        while time.monotonic() < float(added[0].split()[1]) + 2.0:
            added.append(child.stdout.readline())
        child.send_signal(signal.SIGKILL)
        added += child.stdout.readlines()
    return [(int(line.split()[0]), float(line.split()[1])) for line in added if line.endswith("\n")]


async def test_a_killed_process_loses_at_most_the_last_second(schema: PostgresqlSchema) -> None:
    rows = write_for_two_seconds_and_be_killed(schema)
    deadline = time.monotonic() + 20
    while True:
        with locked(schema) as free:
            if free:
                break
        assert time.monotonic() < deadline, "the lock ends with the process"
    async with await Store.open(schema) as store:
        kept = sorted(int(row.id) for row in await store.decisions(limit=100_000))
    assert len(kept) > 100
    assert kept == list(range(len(kept))), "rows are written in the order they were added"
    assert all(moment > rows[-1][1] - 1.0 for number, moment in rows if number >= len(kept))


async def test_one_process_at_a_time_records(
    schema: PostgresqlSchema, decision_row: Callable[..., DecisionRow]
) -> None:
    async with await Store.open(schema, PATIENT):
        with pytest.raises(StorageError, match="is used by another Rematch process"):
            await Store.open(schema, PATIENT)
        with locked(schema) as alone:
            assert not alone
        async with await Store.open(schema, PATIENT, shared=True) as other:
            other.add_decisions(decision_row(1))
            assert await other.flush(), "where both agreed to it"
        async with await Store.open(schema, PATIENT, read_only=True) as reader:
            assert [row.id for row in await reader.decisions()] == ["d1"]
            reader.add_decisions(decision_row(2))
            assert not await reader.flush()
            assert "read-only" in (reader.health.error or "")
    with locked(schema) as alone:
        assert alone


async def test_two_replicas_record_in_one_database(
    server: PostgresqlServer, chunk_row: Callable[..., ChunkRow]
) -> None:
    async with (
        await Store.open(at(server, "rematch-0"), PATIENT) as first,
        await Store.open(at(server, "rematch-1"), PATIENT) as second,
    ):
        first.add_chunks(chunk_row(0.0))
        second.add_chunks(chunk_row(60.0))
        assert await first.flush()
        assert await second.flush()
        assert [row.start for row in await first.chunks(60, 0, 100)] == [0]
        assert [row.start for row in await second.chunks(60, 0, 100)] == [60]


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("postgresql://rematch:wrong@127.0.0.1:{port}/rematch", "password authentication failed.*check the user"),
        ("postgresql://rematch:{password}@127.0.0.1:{port}/none", 'database "none" does not exist.*create it first'),
        ("postgresql://rematch:secret@127.0.0.1:9/rematch", "Connection refused.*check host, port"),
        ("postgresql://rematch:secret@nowhere.invalid/rematch", "cannot be used: .*check host, port"),
    ],
)
async def test_what_is_wrong_is_said_and_the_password_is_not(server: PostgresqlServer, url: str, message: str) -> None:
    filled = url.format(port=server.port, password=PASSWORD.replace(" ", "%20"))
    with pytest.raises(StorageError, match=message) as caught:
        await Store.open(filled, PATIENT)
    shown = f"{caught.value} {caught.value!r}"
    assert not any(secret in shown for secret in ("wrong", "secret", PASSWORD, PASSWORD.replace(" ", "%20")))


async def test_a_user_without_rights_is_told_which(server: PostgresqlServer) -> None:
    async with await Store.open(at(server, "owner"), PATIENT) as store, store._writer.transaction() as connection:
        await connection.execute(text("CREATE USER guest PASSWORD 'guest'"))
    place = locate(f"postgresql://guest:guest@127.0.0.1:{server.port}/rematch", "new")
    with pytest.raises(StorageError, match=r"permission denied.*the right CREATE on the database"):
        await Store.open(place, PATIENT)


async def test_a_missing_driver_is_named_with_the_way_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(StorageError, match=r"needs the driver psycopg.*pip install 'rematch\[postgresql\]'"):
        await Store.open("postgresql://me@127.0.0.1/rematch", patient=True)


async def test_reading_makes_nothing(schema: PostgresqlSchema) -> None:
    with pytest.raises(StorageError, match="no schema yet"):
        await Store.open(schema, PATIENT, read_only=True)
    with pytest.raises(StorageError, match="no schema yet"):
        await Store.open(schema, PATIENT, read_only=True)


async def test_another_schema_version_is_refused(schema: PostgresqlSchema) -> None:
    async with await Store.open(schema, PATIENT) as store, store._writer.transaction() as connection:
        await connection.execute(text("UPDATE alembic_version SET version_num = '0042'"))
    with pytest.raises(StorageError, match=r"has schema 0042.*run the newer version"):
        await Store.open(schema, PATIENT)


@pytest.mark.parametrize("revision", ["0001", "0002", "0003", "0004"])
async def test_every_earlier_schema_leads_here_also_from_a_full_store(schema: PostgresqlSchema, revision: str) -> None:
    from alembic import command
    from alembic.config import Config
    from sqlalchemy import create_engine

    config = Config()
    config.set_main_option("script_location", "storage:migrations")
    engine = create_engine(schema.url, connect_args={"options": f'-csearch_path="{schema.schema}"'})
    with engine.begin() as connection:
        connection.execute(text(f'CREATE SCHEMA "{schema.schema}"'))
        config.attributes["connection"] = connection
        command.upgrade(config, revision)
        connection.execute(
            text(
                "INSERT INTO happiness SELECT 'u' || i, 'shop', 'web-' || i, 5.0, 1.0, 100.0, '{}'"
                " FROM generate_series(1, 50000) AS i"
            )
        )
    engine.dispose()
    async with await Store.open(schema, Limits(flush_seconds=30.0)) as store:
        assert len(await store.happiness()) == 50_000
        store.add_chunks(ChunkRow(60, 0, 0, b"usage"))
        assert await store.flush()


def test_a_file_is_not_made_of_it(schema: PostgresqlSchema, tmp_path_factory: pytest.TempPathFactory) -> None:
    with pytest.raises(StorageError, match="is no file; copy a PostgreSQL database with pg_dump"):
        backup(schema, tmp_path_factory.mktemp("backup") / "copy.db")


@pytest.mark.parametrize("name", ["", "Rematch", 'a"b', "a b", "x" * 64])
def test_a_schema_has_a_plain_name(name: str) -> None:
    with pytest.raises(StorageError, match="give a name of"):
        locate("postgresql://me@db/rematch", name)
