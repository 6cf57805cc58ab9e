"""What an earlier run left behind: its processes, if any, known by pid and start time so that nobody else is hit."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterable
from pathlib import Path

import msgspec

from reactor.errors import InputError

_RECORD = "processes.json"
_BOOT = Path("/proc/sys/kernel/random/boot_id")


class Identity(msgspec.Struct, frozen=True):
    pid: int
    started: int
    """In the kernel's ticks since boot: a pid that is used again has another."""
    boot: str = ""
    """Which boot that was: a record on disk outlives it."""


def identity_of(pid: int) -> Identity | None:
    """None when there is no such process."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    return Identity(pid, int(stat.rpartition(")")[2].split()[19]), _BOOT.read_text().strip())


def check_folder(folder: Path) -> None:
    """Before anything is made there, the lock included: keys and data do not belong among somebody else's files."""
    try:
        theirs = any(folder.iterdir()) and _recorded(folder) is None
    except FileNotFoundError:
        return
    except OSError as error:
        raise InputError(f"--state {folder}: cannot be used: {error.strerror or error}") from error
    if theirs:
        raise InputError(
            f"--state {folder}: not empty, and no control plane of ours ran there; name a folder that is new or empty"
        )


def remember(folder: Path, identities: Iterable[Identity]) -> None:
    """Also the mark by which the next run knows that what is in the folder was made by one of ours."""
    unfinished = folder / f".{_RECORD}.unfinished"
    unfinished.write_bytes(msgspec.json.encode(list(identities)))
    unfinished.rename(folder / _RECORD)


def remove_leftovers(folder: Path, made: Iterable[str]) -> None:
    """Ends the processes on record and removes what a run makes; without a record that is somebody else's."""
    recorded = _recorded(folder)
    there = [path for path in (folder / name for name in made) if path.exists()]
    if recorded is None and there:
        names = ", ".join(path.name for path in there)
        raise InputError(
            f"{folder}: no control plane ran here, and {names} would be overwritten;"
            " name another folder, or remove what you do not need"
        )
    for identity in recorded or ():
        if identity_of(identity.pid) == identity:
            os.kill(identity.pid, signal.SIGKILL)
    for path in there:
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink()


def _recorded(folder: Path) -> list[Identity] | None:
    """None when the folder has no record of ours."""
    try:
        return msgspec.json.decode((folder / _RECORD).read_bytes(), type=list[Identity])
    except (OSError, msgspec.MsgspecError):
        return None
