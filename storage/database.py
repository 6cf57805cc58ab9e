"""The database behind a store, of one kind or another, and how its schema is brought up to date.

Alembic takes as long to import as everything else together, so the functions that need it import it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from sqlalchemy import Connection, inspect
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from storage import StorageError
from storage.limits import Limits
from storage.place import Place, PostgresqlSchema
from storage.postgresql import PostgresqlDatabase
from storage.sqlite import SqliteDatabase

if TYPE_CHECKING:
    from alembic.config import Config
    from alembic.script import ScriptDirectory


class Database(Protocol):
    """What differs between SQLite and PostgreSQL. Everything else is one code path."""

    @property
    def place(self) -> Place: ...

    def writer(self, *, shared: bool) -> AsyncEngine:
        """`shared`: beside another process that records."""
        ...

    def readers(self, *, read_only: bool) -> AsyncEngine:
        """`read_only`: there is no writer, and nothing may change."""
        ...

    def prepare(self, *, read_only: bool) -> None:
        """Blocks."""
        ...

    async def make_schema(self, engine: AsyncEngine) -> None:
        """What has to be there before the tables."""
        ...

    async def has_schema(self, engine: AsyncEngine) -> bool: ...

    def set_aside(self) -> Path | None:
        """Puts what is damaged out of the way. None where that cannot be done."""
        ...

    async def most_bytes(self, connection: AsyncConnection) -> int:
        """A quick bound for the used bytes."""
        ...

    async def used_bytes(self, connection: AsyncConnection) -> int:
        """Of all rows and indexes."""
        ...

    async def reclaim(self) -> None:
        """After many rows were deleted."""
        ...

    def unusable(self, reason: str) -> StorageError: ...


def database_at(place: Place, limits: Limits) -> Database:
    if isinstance(place, PostgresqlSchema):
        return PostgresqlDatabase(place, limits)
    return SqliteDatabase(place, limits)


def writing(engine: AsyncEngine) -> AsyncEngine:
    """Take the write lock of SQLite at the start: a transaction that reads first and then writes could not wait for
    it."""
    return engine.execution_options(begin="BEGIN IMMEDIATE")


async def migrate(database: Database, engine: AsyncEngine) -> None:
    """Bring the database to the schema of this version, or raise StorageError."""
    config = _migrations()
    script = _scripts(config)
    if not await database.has_schema(engine):
        await database.make_schema(engine)
    found = await _known_revision(engine, script, database.place)
    await database.make_schema(engine)
    if found != script.get_current_head():
        async with writing(engine).begin() as connection:
            await connection.run_sync(_upgrade, config)


async def require_schema(database: Database, engine: AsyncEngine) -> None:
    """Raise StorageError unless the database has the schema of this version. Changes nothing: another version may be
    using it."""
    script, place = _scripts(_migrations()), database.place
    has_schema = await database.has_schema(engine)
    found = await _known_revision(engine, script, place) if has_schema else None
    current = script.get_current_head()
    if found != current:
        raise StorageError(
            f"{place} has {f'the older schema {found}' if found else 'no schema yet'}, this version of Rematch reads"
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


async def _known_revision(engine: AsyncEngine, script: ScriptDirectory, place: Place) -> str | None:
    async with engine.connect() as connection:
        found = await connection.run_sync(_revision, place)
    _require_known(found, script, place)
    return found


def _revision(connection: Connection, place: Place) -> str | None:
    from alembic.migration import MigrationContext

    found = MigrationContext.configure(connection).get_current_revision()
    if found is None and inspect(connection).get_table_names():
        raise StorageError(f"{place} is the database of another program; give Rematch one of its own")
    return found


def _require_known(found: str | None, script: ScriptDirectory, place: Place) -> None:
    known = {revision.revision for revision in script.walk_revisions()}
    if found is not None and found not in known:
        raise StorageError(
            f"{place} has schema {found}, but this version of Rematch knows schemas up to {script.get_current_head()}; "
            "run the newer version of Rematch that made it, or give another store"
        )


def _upgrade(connection: Connection, config: Config) -> None:
    from alembic import command

    config.attributes["connection"] = connection
    command.upgrade(config, "head")
