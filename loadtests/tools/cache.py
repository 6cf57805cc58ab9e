"""The folder outside the clone where programs are kept, one per name and version."""

from __future__ import annotations

import asyncio
import fcntl
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from loadtests.tools.catalogue import Program

_POLL_SECONDS = 0.5


class Cache:
    def __init__(self, root: Path) -> None:
        self.root = root

    @classmethod
    def usual(cls) -> Cache:
        if given := os.environ.get("REMATCH_TOOLS"):
            return cls(Path(given).expanduser().absolute())
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        return cls(Path(base).absolute() / "rematch" / "tools")

    def place(self, program: Program) -> Path:
        return self.root / f"{program.name}-{program.version}" / program.name

    def find(self, program: Program) -> Path | None:
        place = self.place(program)
        return place if place.exists() else None

    def unfinished(self, program: Program) -> Path:
        """Where a program is written until it is whole; `keep` then makes it appear at once."""
        place = self.place(program)
        place.parent.mkdir(parents=True, exist_ok=True)
        return place.with_name(f".{place.name}.unfinished")

    def keep(self, program: Program) -> Path:
        place = self.place(program)
        self.unfinished(program).rename(place)
        return place

    def sources(self, name: str) -> Path:
        folder = self.root / "src" / name
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    @asynccontextmanager
    async def alone(self, name: str, waiting: Callable[[], None]) -> AsyncIterator[None]:
        """One builder at a time; a killed one leaves no lock behind."""
        with (self.sources(name) / ".lock").open("w") as lock:
            reported = False
            while not _taken(lock.fileno()):
                if not reported:
                    waiting()
                reported = True
                await asyncio.sleep(_POLL_SECONDS)
            yield


def _taken(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
