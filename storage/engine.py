"""The engine: where the database is, and how every connection to it behaves."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from sqlalchemy import URL, Connection, event, make_url
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import ArgumentError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.pool import ConnectionPoolEntry

from storage.errors import StorageError
from storage.limits import Limits

_POOL_SIZE = 4
_WAL_KEPT_BYTES = 64 * 1024 * 1024


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


def connect(path: Path, limits: Limits) -> AsyncEngine:
    engine = create_async_engine(
        URL.create("sqlite+aiosqlite", database=str(path)),
        connect_args={"timeout": limits.busy_seconds},
        pool_size=_POOL_SIZE,
        max_overflow=0,
        pool_timeout=limits.call_seconds,
    )
    event.listen(engine.sync_engine, "connect", _prepare)
    event.listen(engine.sync_engine, "begin", _begin)
    return engine


def writing(engine: AsyncEngine) -> AsyncEngine:
    """Take the write lock at the start: a transaction that reads first and then writes could not wait for it."""
    return engine.execution_options(begin="BEGIN IMMEDIATE")


def without_transaction(engine: AsyncEngine) -> AsyncEngine:
    return engine.execution_options(begin="")


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
