"""A component as a process that cannot outlive this one, and the removal of what killed runs left behind."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterable
from pathlib import Path

import msgspec

from loadtests.tools.processes import ENDS_WITH_US, without_proxies
from reactor.errors import ClusterError, InputError

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
    """Called before anything is written, so that keys and data never end up among other files."""
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


_TAIL = 15
_KILL_SECONDS = 10.0


class ComponentProcess:
    """Killed, not asked to end: an API server waits a minute for its watches, and nothing of it is kept."""

    def __init__(self, name: str, command: list[str], log: Path) -> None:
        self.name = name
        self._command = command
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def identity(self) -> Identity | None:
        return identity_of(self._process.pid) if self._process is not None else None

    def start(self) -> None:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [*ENDS_WITH_US, *self._command],
                env=without_proxies(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            try:
                self._process.wait(_KILL_SECONDS)
            except subprocess.TimeoutExpired as error:
                raise ClusterError(f"{self.name} was killed and did not end within {_KILL_SECONDS:g} s") from error
            self._process = None

    def check(self) -> None:
        """Raises with the end of its log when it has ended."""
        if self._process is None or self._process.poll() is not None:
            raise ClusterError(f"{self.name} ended: {self.log_tail()}")

    def log_tail(self) -> str:
        lines = self._log.read_text(errors="replace").splitlines()
        return "\n".join([f"(the end of {self._log})", *lines[-_TAIL:]])
