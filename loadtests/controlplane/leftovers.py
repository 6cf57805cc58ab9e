"""What an earlier run left behind: its processes, if any, known by pid and start time so that nobody else is hit."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from reactor.errors import InputError

_RECORD = "processes.json"


class Identity(msgspec.Struct, frozen=True):
    pid: int
    started: int
    """In the kernel's ticks since boot: a pid that is used again has another."""


def identity_of(pid: int) -> Identity | None:
    """None when there is no such process."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    return Identity(pid, int(stat.rpartition(")")[2].split()[19]))


def remember(folder: Path, identities: Iterable[Identity]) -> None:
    (folder / _RECORD).write_bytes(msgspec.json.encode(list(identities)))


def remove_leftovers(folder: Path, made: Iterable[str]) -> None:
    """Ends the processes on record and removes the subfolders that a run makes."""
    try:
        recorded = msgspec.json.decode((folder / _RECORD).read_bytes(), type=list[Identity])
    except (OSError, msgspec.MsgspecError):
        recorded = []
    for identity in recorded:
        if identity_of(identity.pid) == identity:
            os.kill(identity.pid, signal.SIGKILL)
    for name in made:
        shutil.rmtree(folder / name, ignore_errors=True)


@contextmanager
def sole_user(folder: Path) -> Iterator[None]:
    """One run per folder at a time; the kernel gives the lock back when its holder is killed."""
    with (folder / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise InputError(f"{folder}: another control plane runs here; stop it or choose another folder") from error
        yield
