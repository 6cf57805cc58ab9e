"""A bar with the time left, on a terminal; a line now and then elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import TextIO

_WIDTH = 30
_QUIET = 20.0
"""Seconds between two lines where there is no terminal."""


@dataclass(frozen=True, slots=True)
class Progress:
    done: int
    of: int
    last: str = ""
    """What was done last, for people."""


class ProgressBar:
    def __init__(self, now: Callable[[], float], out: TextIO = sys.stderr) -> None:
        self._now, self._out = now, out
        self._began, self._shown = now(), float("-inf")
        self._first: int | None = None

    def show(self, progress: Progress) -> None:
        if self._first is None:
            self._first = progress.done
        over = progress.done == progress.of
        if self._out.isatty():
            self._out.write(f"\r\x1b[K{self.line(progress)}" + ("\n" if over else ""))
        elif over or self._now() - self._shown >= _QUIET:
            self._shown = self._now()
            print(self.line(progress), file=self._out)
        self._out.flush()

    def line(self, progress: Progress) -> str:
        share = progress.done / max(progress.of, 1)
        filled = round(share * _WIDTH)
        doing = f"  {progress.last}" if progress.last else ""
        return f"[{'#' * filled}{'.' * (_WIDTH - filled)}] {share:4.0%}  {self._left(progress)}{doing}"

    def _left(self, progress: Progress) -> str:
        done = progress.done - (self._first or 0)
        if done == 0:
            return "? left"
        seconds = (self._now() - self._began) / done * (progress.of - progress.done)
        return f"{int(seconds) // 60}:{int(seconds) % 60:02} left"
