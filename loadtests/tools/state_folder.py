"""The folder that a command keeps its files in, locked so that one process at a time uses it."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from reactor.errors import InputError


@contextmanager
def claimed(folder: Path, other: str = "name another folder with --state") -> Iterator[Path]:
    """The lock goes with the process, however it ends. `other` says how to run beside it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / "lock").open("w")
    except OSError as error:
        raise InputError(f"--state {folder}: cannot be used: {error.strerror or error}") from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise InputError(f"another run uses {folder}; end it, or {other}") from error
        yield folder
