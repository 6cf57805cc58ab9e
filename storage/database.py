"""The database: where it is, how connections to it behave, and how its schema is brought up to date.

Alembic takes as long to import as everything else together, so the functions that need it import it.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import URL, Connection, event, inspect, make_url
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import ArgumentError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.pool import ConnectionPoolEntry

from storage import StorageError

if TYPE_CHECKING:
    from alembic.config import Config
    from alembic.script import ScriptDirectory

_MAGIC = b"SQLite format 3\0"
_WRITERS = 2
_READERS = 4
_WAL_KEPT_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Limits:
    flush_seconds: float = 0.5
    """A row waits at most this long for its batch; what a killed process can lose."""
    batch_rows: int = 2_000
    """Rows in one transaction; a batch that is full is written at once."""
    queue_rows: int = 200_000
    """Rows of one table that wait while the disk refuses; beyond it the oldest are dropped and counted."""
    busy_seconds: float = 5.0
    """How long SQLite waits for the lock of another process."""
    call_seconds: float = 30.0
    """Deadline of one call, for a disk that does not answer at all."""
    retry_seconds: float = 2.0
    """Pause after a write that failed."""


def locate(where: str | Path) -> Path:
    """The file behind a path or an SQLite URL."""
    if isinstance(where, Path) or "://" not in where:
        database = str(where)
    else:
        try:
            url = make_url(where)
        except ArgumentError:
            raise StorageError("the database URL cannot be read; write sqlite:///folder/file.db") from None
        if url.get_backend_name() != "sqlite":
            raise StorageError(f"{url.drivername} is not supported yet; give a file or sqlite:///folder/file.db")
        database = url.database or ""
    if database in ("", ":memory:"):
        raise StorageError("a database in memory would be forgotten; give a file or sqlite:///folder/file.db")
    return Path(database).expanduser()


def make_file(path: Path) -> None:
    """A file that cannot be opened is found here: aiosqlite's thread would outlive such a failure."""
    path.parent.mkdir(parents=True, exist_ok=True)
    sqlite3.connect(path).close()


def set_aside(path: Path) -> Path | None:
    """Renames a damaged database with its log, so that a new one can begin. Returns its new name; None for a file that
    does not begin like one of SQLite: it may be somebody's, given by mistake."""
    with path.open("rb") as file:
        if file.read(len(_MAGIC)) != _MAGIC:
            return None
    number = next(each for each in count(1) if not path.with_name(f"{path.name}.damaged-{each}").exists())
    kept = path.with_name(f"{path.name}.damaged-{number}")
    for part in ("-wal", "-shm", ""):
        found = path.with_name(f"{path.name}{part}")
        if found.exists():
            found.rename(kept.with_name(f"{kept.name}{part}"))
    return kept


def check_file(path: Path) -> None:
    """As `make_file`, for a file that is only read."""
    if not path.is_file():
        raise StorageError(f"there is no store at {path}; `rematch run --store {path}` makes one")
    path.open("rb").close()


def connect(path: Path, limits: Limits, *, read_only: bool = False, readers: bool = False) -> AsyncEngine:
    """`readers` have connections of their own: look-ups of any number never delay a record."""
    engine = create_async_engine(
        _read_only_url(path) if read_only else URL.create("sqlite+aiosqlite", database=str(path)),
        connect_args={"timeout": limits.busy_seconds},
        pool_size=_READERS if readers or read_only else _WRITERS,
        max_overflow=0,
        pool_timeout=limits.call_seconds,
    )
    event.listen(engine.sync_engine, "connect", _prepare)
    event.listen(engine.sync_engine, "begin", _begin)
    return engine


def _read_only_url(path: Path) -> URL:
    """Without a write-ahead log nobody uses the file. SQLite would leave an empty one behind, owned by the reader,
    which may keep the controller from opening its store."""
    options = {"mode": "ro", "uri": "true"}
    if not path.with_name(f"{path.name}-wal").exists():
        options["immutable"] = "1"
    return URL.create("sqlite+aiosqlite", database=path.absolute().as_uri(), query=options)


def writing(engine: AsyncEngine) -> AsyncEngine:
    """Take the write lock at the start: a transaction that reads first and then writes could not wait for it."""
    return engine.execution_options(begin="BEGIN IMMEDIATE")


def _prepare(connection: DBAPIConnection, _entry: ConnectionPoolEntry) -> None:
    # The driver's own transactions do not cover DDL; with None it leaves BEGIN to us.
    connection.isolation_level = None
    cursor = connection.cursor()
    cursor.execute("PRAGMA foreign_keys = ON")
    cursor.execute("PRAGMA synchronous = NORMAL")
    cursor.execute(f"PRAGMA journal_size_limit = {_WAL_KEPT_BYTES}")
    cursor.close()


def _begin(connection: Connection) -> None:
    statement = connection.get_execution_options().get("begin", "BEGIN")
    if statement:
        connection.exec_driver_sql(statement)


async def migrate(engine: AsyncEngine, file: Path) -> None:
    """Bring the database to the schema of this version, or raise StorageError."""
    config = _migrations()
    script = _scripts(config)
    found = await _known_revision(engine, script, file)
    await _use_wal(engine)
    if found != script.get_current_head():
        async with writing(engine).begin() as connection:
            await connection.run_sync(_upgrade, config)


async def require_schema(engine: AsyncEngine, file: Path) -> None:
    """Raise StorageError unless the database has the schema of this version. Changes nothing: another version may be
    using it."""
    script = _scripts(_migrations())
    found, current = await _known_revision(engine, script, file), script.get_current_head()
    if found != current:
        raise StorageError(
            f"{file} has {f'the older schema {found}' if found else 'no schema yet'}, this version of Rematch reads"
            f" schema {current}, and a command that only reads changes nothing; read it with the version that wrote it,"
            " or start `rematch run` of this version with it, which brings it up to date"
        )


def _migrations() -> Config:
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", "storage:migrations")
    return config


def _scripts(config: Config) -> ScriptDirectory:
    from alembic.script import ScriptDirectory

    return ScriptDirectory.from_config(config)


async def _known_revision(engine: AsyncEngine, script: ScriptDirectory, file: Path) -> str | None:
    async with engine.connect() as connection:
        found = await connection.run_sync(_revision, file)
    _require_known(found, script, file)
    return found


def _revision(connection: Connection, file: Path) -> str | None:
    from alembic.migration import MigrationContext

    found = MigrationContext.configure(connection).get_current_revision()
    if found is None and inspect(connection).get_table_names():
        raise StorageError(f"{file} is the database of another program; give Rematch a file of its own")
    return found


def _require_known(found: str | None, script: ScriptDirectory, file: Path) -> None:
    known = {revision.revision for revision in script.walk_revisions()}
    if found is not None and found not in known:
        raise StorageError(
            f"{file} has schema {found}, but this version of Rematch knows schemas up to {script.get_current_head()}; "
            "run the newer version of Rematch that made it, or give another file"
        )


async def _use_wal(engine: AsyncEngine) -> None:
    async with engine.execution_options(begin="").connect() as connection:  # SQLite sets it outside of transactions
        mode = (await connection.exec_driver_sql("PRAGMA journal_mode = WAL")).scalar_one()
    if mode != "wal":
        raise StorageError(
            f"{engine.url.database} cannot have a write-ahead log (its journal mode is {mode}); put it on a local disk"
        )


def _upgrade(connection: Connection, config: Config) -> None:
    from alembic import command

    config.attributes["connection"] = connection
    command.upgrade(config, "head")
