"""The lock of a store: one process at a time carries out moves and records them in it."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from storage import StorageError
from storage.limits import Limits
from storage.place import Place, PostgresqlSchema, locate
from storage.postgresql import PostgresqlDatabase


@contextmanager
def locked(store: str | Place) -> Iterator[bool]:
    """Hold the lock of a store, by whatever path it is named; False if another process holds it. The lock ends with
    the process, however it ends. In PostgreSQL the writer of an open store holds it, not this."""
    place = locate(store)
    if isinstance(place, PostgresqlSchema):
        yield PostgresqlDatabase(place, Limits()).is_free()
        return
    database = place.resolve()
    path = database.with_name(f"{database.name}.lock")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise StorageError(f"{path} cannot be opened: {error.strerror}; check the folder's permissions") from error
    try:
        yield _lock(file, path)
    finally:
        os.close(file)


def _lock(file: int, path: Path) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        raise StorageError(f"{path} cannot be locked: {error.strerror}; put the store on a local disk") from error
    return True
