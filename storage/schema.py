"""Brings a database to the schema this version knows, or says why not. Alembic is imported only when this module is."""

from __future__ import annotations

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, inspect
from sqlalchemy.ext.asyncio import AsyncEngine

from storage.engine import without_transaction, writing
from storage.errors import StorageError


async def migrate(engine: AsyncEngine) -> None:
    config = Config()
    config.set_main_option("script_location", "storage:migrations")
    script = ScriptDirectory.from_config(config)
    async with engine.connect() as connection:
        found = await connection.run_sync(_revision)
    _require_known(found, script, engine.url.database)
    await _use_wal(engine)
    if found != script.get_current_head():
        async with writing(engine).begin() as connection:
            await connection.run_sync(_upgrade, config)


def _revision(connection: Connection) -> str | None:
    found = MigrationContext.configure(connection).get_current_revision()
    if found is None and inspect(connection).get_table_names():
        raise StorageError(
            f"{connection.engine.url.database} is the database of another program; give Rematch a file of its own"
        )
    return found


def _require_known(found: str | None, script: ScriptDirectory, file: str | None) -> None:
    known = {revision.revision for revision in script.walk_revisions()}
    if found is not None and found not in known:
        raise StorageError(
            f"{file} has schema {found}, but this version of Rematch knows schemas up to {script.get_current_head()}; "
            "run the newer version of Rematch that made it, or give another file"
        )


async def _use_wal(engine: AsyncEngine) -> None:
    async with without_transaction(engine).connect() as connection:
        mode = (await connection.exec_driver_sql("PRAGMA journal_mode = WAL")).scalar_one()
    if mode != "wal":
        raise StorageError(
            f"{engine.url.database} cannot have a write-ahead log (its journal mode is {mode}); put it on a local disk"
        )


def _upgrade(connection: Connection, config: Config) -> None:
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
