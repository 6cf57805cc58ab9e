"""Where a store is: a file of SQLite, or a schema of a PostgreSQL database. Printed, a place never shows a password."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from storage import StorageError

DEFAULT_SCHEMA = "rematch"
_FORMS = "a file, sqlite:///folder/file.db or postgresql://user@host/database"
_SCHEMA = re.compile(r"[a-z_][a-z0-9_-]{0,62}")


@dataclass(frozen=True, slots=True)
class PostgresqlSchema:
    """Several stores can be in one database, each in a schema of its own."""

    url: URL
    schema: str = DEFAULT_SCHEMA

    def __post_init__(self) -> None:
        if not _SCHEMA.fullmatch(self.schema):
            raise StorageError(f"schema {self.schema!r}: give a name of a-z, 0-9, _ and -, such as {DEFAULT_SCHEMA}")
        if not self.url.database:
            raise StorageError(f"{self} names no database; write postgresql://user@host/database")

    def __str__(self) -> str:
        shown = URL.create("postgresql", self.url.username, None, self.url.host, self.url.port, self.url.database)
        return f"{shown} (schema {self.schema})"


Place: TypeAlias = Path | PostgresqlSchema


def locate(where: str | Place, schema: str = DEFAULT_SCHEMA) -> Place:
    """What a path or a URL names. `schema` counts for PostgreSQL only."""
    if not isinstance(where, str):
        return where.expanduser() if isinstance(where, Path) else where
    if "://" not in where:
        return _file(where)
    try:
        url = make_url(where)
    except (ArgumentError, ValueError):
        raise StorageError(f"the database URL cannot be read; write {_FORMS}") from None
    match url.get_backend_name():
        case "sqlite":
            return _file(url.database or "")
        case "postgresql" | "postgres":
            return PostgresqlSchema(url.set(drivername="postgresql+psycopg"), schema)
        case other:
            raise StorageError(f"{other} is not supported; give {_FORMS}")


def file_of(where: str | Place) -> Path:
    """The file of SQLite, for what can be done with files only."""
    place = locate(where)
    if isinstance(place, PostgresqlSchema):
        raise StorageError(f"{place} is no file; copy a PostgreSQL database with pg_dump and pg_restore")
    return place


def _file(name: str) -> Path:
    if name in ("", ":memory:"):
        raise StorageError("a database in memory would be forgotten; give a file or sqlite:///folder/file.db")
    return Path(name).expanduser()
