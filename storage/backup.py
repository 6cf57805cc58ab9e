"""A copy of a store, also of one in use, and a store made from such a copy. Both are checked before they count."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from storage import StorageError
from storage.lock import locked
from storage.place import Place, file_of
from storage.sqlite import check_file

_BUSY_SECONDS = 30.0


def backup(store: str | Place, target: Path, *, force: bool = False) -> int:
    """Copies the store to a file by SQLite's online backup, while a controller may write to it. Returns the rows."""
    source = file_of(store)
    check_file(source)
    _refuse_existing(target, force=force)
    return _copied(source, target)


def restore(source: Path, store: str | Place, *, force: bool = False) -> int:
    """Makes a store from a backup. A store that is there is replaced only by force, and never while it is in use."""
    target = file_of(store)
    check_file(source)
    _refuse_existing(target, force=force)
    with locked(target) as alone:
        if not alone:
            raise StorageError(f"{target} is used by another Rematch process; stop it first")
        return _copied(source, target)


def _refuse_existing(target: Path, *, force: bool) -> None:
    if target.exists() and not force:
        raise StorageError(f"{target} exists; give another file, or replace it with --force")


def _copied(source: Path, target: Path) -> int:
    """Under another name until it is checked: a copy that failed replaces nothing."""
    unfinished = target.with_name(f"{target.name}.unfinished")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        unfinished.unlink(missing_ok=True)
        expected = _copy(source, unfinished)
        found = _checked_counts(unfinished)
        if found != expected:
            raise StorageError(f"the copy of {source} has other rows than it: {_difference(expected, found)}")
        for left in ("-wal", "-shm"):  # of a replaced store: SQLite would apply it to the new one
            target.with_name(f"{target.name}{left}").unlink(missing_ok=True)
        os.replace(unfinished, target)
    except sqlite3.Error as error:
        raise StorageError(f"{source} cannot be copied to {target}: {error}") from error
    except OSError as error:
        raise StorageError(f"{target} cannot be written: {error.strerror}") from error
    finally:
        unfinished.unlink(missing_ok=True)
    return sum(expected.values())


def _copy(source: Path, target: Path) -> Mapping[str, int]:
    """Returns the rows by table, counted in the same state of the source that is copied."""
    uri = f"{source.resolve().as_uri()}?mode=ro"
    with closing(sqlite3.connect(uri, uri=True, timeout=_BUSY_SECONDS, isolation_level=None)) as reading:
        reading.execute("BEGIN")
        counts = _counts(reading)
        target.touch(mode=0o600)
        with closing(sqlite3.connect(target)) as writing:
            reading.backup(writing)
            writing.execute("PRAGMA journal_mode=DELETE")
        reading.execute("ROLLBACK")
    return counts


def _checked_counts(path: Path) -> Mapping[str, int]:
    with closing(sqlite3.connect(path)) as connection:
        (verdict,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
        if verdict != "ok":
            raise StorageError(f"the copy is damaged: {verdict}")
        return _counts(connection)


def _counts(connection: sqlite3.Connection) -> dict[str, int]:
    query = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name"
    names = [name for (name,) in connection.execute(query)]
    if "alembic_version" not in names:
        raise StorageError("this file is no store of Rematch")
    return {name: connection.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0] for name in names}


def _difference(expected: Mapping[str, int], found: Mapping[str, int]) -> str:
    tables = sorted({*expected, *found})
    return ", ".join(f"{name} {expected.get(name, 0)} and {found.get(name, 0)}" for name in tables)
