"""Records on disk, one JSON line each, so that an interrupted experiment loses nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Generic, TypeVar

import msgspec

R = TypeVar("R")


class RecordFile(Generic[R]):
    def __init__(self, path: Path, kind: type[R]) -> None:
        self._path, self._kind = path, kind

    def read(self) -> list[R]:
        """A line that was cut short is left out: it is made again."""
        found: list[R] = []
        for line in self._path.read_bytes().splitlines() if self._path.exists() else ():
            try:
                found.append(msgspec.json.decode(line, type=self._kind))
            except msgspec.DecodeError:
                continue
        return found

    def forget(self) -> None:
        self._path.unlink(missing_ok=True)

    def add(self, record: R) -> None:
        """On a line of its own, also after one that was cut short."""
        with self._path.open("ab") as file:
            file.write(b"\n" + msgspec.json.encode(record) + b"\n")
