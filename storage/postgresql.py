"""A store in a schema of a PostgreSQL database.

The writer has one connection, and with it an advisory lock: whoever loses the connection loses the lock, and gets both
back together, so two processes never record in one schema, also after the server was restarted. A connection pooler in
between has to keep sessions.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sqlalchemy import Column, Engine, case, create_engine, event, func, select, text
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.pool import ConnectionPoolEntry, NullPool

from storage import StorageError, tables
from storage.errors import describe
from storage.limits import Limits
from storage.place import PostgresqlSchema

_READERS = 4
_RECLAIM_SECONDS = 600.0
_ROW_BYTES = 60
"""Of a row beside its columns: its header, and its share of the indexes."""
_PIECE_BYTES, _PIECE_SPACE = 1996, 2048
_SIZE = (
    "SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0) FROM pg_class c JOIN pg_namespace n ON n.oid ="
    " c.relnamespace WHERE c.relkind = 'r' AND n.nspname = current_schema()"
)
_ADVICE = (
    ("password", "check the user and the password of the URL"),
    ("does not exist", "create it first, with a user who may create a schema in it"),
    ("permission denied", "the user needs the right CREATE on the database, or a schema of its own"),
    ("too many", "the server has no connection left for this user; Rematch needs six"),
)


class PostgresqlDatabase:
    def __init__(self, place: PostgresqlSchema, limits: Limits) -> None:
        _require_driver()
        self.place = place
        self._limits = limits

    def writer(self, *, shared: bool) -> AsyncEngine:
        """`shared`: beside another process, without its lock."""
        engine = self._connect(1)
        if not shared:
            event.listen(engine.sync_engine, "connect", self._take_lock)
        return engine

    def readers(self, *, read_only: bool) -> AsyncEngine:  # noqa: ARG002 - readers never write
        return self._connect(_READERS, default_transaction_read_only="on")

    def prepare(self, *, read_only: bool) -> None:
        """Nothing can be done before the first connection."""

    async def make_schema(self, engine: AsyncEngine) -> None:
        """The right to make one is needed only where there is none."""
        if not await self.has_schema(engine):
            async with engine.begin() as connection:
                await connection.execute(text(f'CREATE SCHEMA IF NOT EXISTS "{self.place.schema}"'))

    async def has_schema(self, engine: AsyncEngine) -> bool:
        async with engine.connect() as connection:
            return (await connection.execute(text("SELECT current_schema()"))).scalar_one() is not None

    def set_aside(self) -> Path | None:
        return None

    async def most_bytes(self, connection: AsyncConnection) -> int:
        """Of the server's files, with what waits for VACUUM."""
        return int((await connection.execute(text(_SIZE))).scalar_one())

    async def used_bytes(self, connection: AsyncConnection) -> int:
        """Counted by row, since files do not shrink when rows are deleted. Reads no document."""
        total = 0
        for table in tables.metadata.sorted_tables:
            row = sum(map(_stored_bytes, table.columns), start=_ROW_BYTES)
            found = await connection.execute(select(func.coalesce(func.sum(row), 0)).select_from(table))
            total += int(found.scalar_one())
        return total

    async def reclaim(self) -> None:
        """Lets new rows take the place of deleted ones, now and not at some time."""
        engine = create_async_engine(
            self.place.url,
            connect_args=self._arguments({"statement_timeout": f"{_RECLAIM_SECONDS * 1000:.0f}"}),
            isolation_level="AUTOCOMMIT",
            poolclass=NullPool,
        )
        try:
            async with asyncio.timeout(_RECLAIM_SECONDS), engine.connect() as connection:
                for table in (tables.usage_chunks, tables.problems, tables.plans, tables.decisions):
                    await connection.execute(text(f"VACUUM {table.name}"))
        finally:
            await engine.dispose()

    def unusable(self, reason: str) -> StorageError:
        advice = next((how for words, how in _ADVICE if words in reason), "check host, port, network and the server")
        return StorageError(f"{self.place} cannot be used: {reason}; {advice}")

    def is_free(self) -> bool:
        """Whether no process holds the lock now. Raises StorageError when the server cannot be asked."""
        engine: Engine = create_engine(self.place.url, connect_args=self._arguments({}), poolclass=NullPool)
        try:
            with engine.connect() as connection:
                return connection.execute(text(self._lock("pg_try_advisory_xact_lock"))).scalar_one() is True
        except SQLAlchemyError as error:
            raise self.unusable(describe(error)) from error
        finally:
            engine.dispose()

    def _connect(self, connections: int, **settings: str) -> AsyncEngine:
        """Connections are tried before use: those of a server that was restarted are replaced."""
        return create_async_engine(
            self.place.url,
            connect_args=self._arguments(settings),
            pool_size=connections,
            max_overflow=0,
            pool_timeout=self._limits.call_seconds,
            pool_pre_ping=True,
        )

    def _arguments(self, settings: Mapping[str, str]) -> dict[str, Any]:
        """Deadlines on both sides: a connection that died is noticed by the server, too, which frees the lock."""
        wanted = {
            "search_path": f'"{self.place.schema}"',
            "statement_timeout": f"{self._limits.call_seconds * 1000:.0f}",
            "idle_in_transaction_session_timeout": f"{self._limits.call_seconds * 2000:.0f}",
            "tcp_keepalives_idle": "10",
            "tcp_keepalives_interval": "5",
            "tcp_keepalives_count": "3",
            **settings,
        }
        stated = self.place.url.query.get("options", ())
        added = [f"-c{name}={value}" for name, value in wanted.items()]
        options = " ".join([*([stated] if isinstance(stated, str) else stated), *added])
        return {
            "connect_timeout": max(2, round(self._limits.busy_seconds)),
            "keepalives_idle": 10,
            "keepalives_interval": 5,
            "keepalives_count": 3,
            "application_name": "rematch",
            "options": options,
        }

    def _lock(self, function: str) -> str:
        """Locks belong to a database: other schemas in it have other ones."""
        return f"SELECT {function}(hashtextextended('rematch store {self.place.schema}', 0))"

    def _take_lock(self, connection: DBAPIConnection, entry: ConnectionPoolEntry) -> None:  # noqa: ARG002
        import psycopg

        try:
            cursor = connection.cursor()
            cursor.execute(self._lock("pg_try_advisory_lock"))
            row = cursor.fetchone()
            cursor.close()
            connection.commit()
        except psycopg.Error as error:
            raise self.unusable(describe(error)) from error
        if row is None or row[0] is not True:
            connection.close()
            raise StorageError(f"{self.place} is used by another Rematch process; stop it, or give a schema of its own")


def _stored_bytes(column: Column[Any]) -> Any:
    """What is large is cut into pieces, of which four fill a page."""
    size = func.coalesce(func.pg_column_size(column), 0)
    return case((size > _PIECE_BYTES, func.ceil(size / float(_PIECE_BYTES)) * _PIECE_SPACE), else_=size)


def _require_driver() -> None:
    try:
        import psycopg  # noqa: F401
    except ImportError as error:
        raise StorageError(
            f"PostgreSQL needs the driver psycopg, which cannot be imported ({error});"
            " pip install 'rematch[postgresql]'"
        ) from error
