"""A store in a file of SQLite."""

from __future__ import annotations

import sqlite3
from itertools import count
from pathlib import Path

from sqlalchemy import URL, Connection, event
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.pool import ConnectionPoolEntry

from storage import DamagedError, StorageError
from storage.limits import Limits

_MAGIC = b"SQLite format 3\0"
_WRITERS = 2
_READERS = 4
_WAL_KEPT_BYTES = 64 * 1024 * 1024


class SqliteDatabase:
    def __init__(self, path: Path, limits: Limits) -> None:
        self.place = path
        self._limits = limits

    def writer(self, *, shared: bool) -> AsyncEngine:  # noqa: ARG002 - whoever shares it, SQLite's locks do
        return self._connect(URL.create("sqlite+aiosqlite", database=str(self.place)), _WRITERS)

    def readers(self, *, read_only: bool) -> AsyncEngine:
        """Connections of their own: look-ups of any number never delay a record."""
        url = URL.create("sqlite+aiosqlite", database=str(self.place))
        return self._connect(_read_only_url(self.place) if read_only else url, _READERS)

    def prepare(self, *, read_only: bool) -> None:
        """A file that cannot be opened is found here: aiosqlite's thread would outlive such a failure."""
        if read_only:
            check_file(self.place)
            return
        self.place.parent.mkdir(parents=True, exist_ok=True)
        sqlite3.connect(self.place).close()

    async def make_schema(self, engine: AsyncEngine) -> None:
        """SQLite sets the write-ahead log outside of transactions."""
        async with engine.execution_options(begin="").connect() as connection:
            mode = (await connection.exec_driver_sql("PRAGMA journal_mode = WAL")).scalar_one()
        if mode != "wal":
            raise StorageError(
                f"{self.place} cannot have a write-ahead log (its journal mode is {mode}); put it on a local disk"
            )

    async def has_schema(self, engine: AsyncEngine) -> bool:  # noqa: ARG002
        return True

    def set_aside(self) -> Path | None:
        """Renames a damaged database with its log, so that a new one can begin. Returns its new name; None for a file
        that does not begin like one of SQLite: it may be somebody's, given by mistake."""
        path = self.place
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

    async def used_bytes(self, connection: AsyncConnection) -> int:
        sizes = [
            int((await connection.exec_driver_sql(f"PRAGMA {name}")).scalar_one())
            for name in ("page_count", "freelist_count", "page_size")
        ]
        return (sizes[0] - sizes[1]) * sizes[2]

    most_bytes = used_bytes

    async def reclaim(self) -> None:
        """New rows take the free pages by themselves."""

    def unusable(self, reason: str) -> StorageError:
        if "not a database" in reason or "malformed" in reason:
            return DamagedError(
                f"{self.place} is damaged or no SQLite database ({reason}); nothing was changed: "
                "move it (with its -wal and -shm files) out of the way to start with an empty one, or restore a copy"
            )
        advice = "check the folder's permissions, the free space and other users of it"
        return StorageError(f"{self.place} cannot be used: {reason}; {advice}")

    def _connect(self, url: URL, connections: int) -> AsyncEngine:
        engine = create_async_engine(
            url,
            connect_args={"timeout": self._limits.busy_seconds},
            pool_size=connections,
            max_overflow=0,
            pool_timeout=self._limits.call_seconds,
        )
        event.listen(engine.sync_engine, "connect", _prepare_connection)
        event.listen(engine.sync_engine, "begin", _begin)
        return engine


def check_file(path: Path) -> None:
    """That it is there and can be read."""
    if not path.is_file():
        raise StorageError(f"there is no store at {path}; `rematch run --store {path}` makes one")
    path.open("rb").close()


def _read_only_url(path: Path) -> URL:
    """Without a write-ahead log nobody uses the file. SQLite would leave an empty one behind, owned by the reader,
    which may keep the controller from opening its store."""
    options = {"mode": "ro", "uri": "true"}
    if not path.with_name(f"{path.name}-wal").exists():
        options["immutable"] = "1"
    return URL.create("sqlite+aiosqlite", database=path.absolute().as_uri(), query=options)


def _prepare_connection(connection: DBAPIConnection, _entry: ConnectionPoolEntry) -> None:
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
