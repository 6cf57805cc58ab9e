"""A bar with the time left, on a terminal; a line now and then elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import TextIO

_WIDTH = 30
_QUIET = 20.0
"""Seconds between two lines where there is no terminal."""
_ENOUGH = 20
"""Steps after which only what was seen counts, and not what was expected."""


@dataclass(frozen=True, slots=True)
class Progress:
    done: int
    of: int
    last: str = ""
    """What was done last, or is being done, for people."""


class ProgressBar:
    """The time left is reckoned from how long the steps take; first from the seconds `expected` for all of them, where
    they are known."""

    def __init__(
        self,
        now: Callable[[], float],
        out: TextIO = sys.stderr,
        *,
        name: str = "",
        expected: float | None = None,
    ) -> None:
        self._now, self._out = now, out
        self._name, self._expected = name, expected
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
        name = f"{self._name} " if self._name else ""
        doing = f"  {progress.last}" if progress.last else ""
        left = self._seconds_left(progress)
        clock = "?" if left is None else f"{int(left) // 60}:{int(left) % 60:02}"
        return f"{name}[{'#' * filled}{'.' * (_WIDTH - filled)}] {share:4.0%}  {clock} left{doing}"

    def _seconds_left(self, progress: Progress) -> float | None:
        done, missing = progress.done - (self._first or 0), progress.of - progress.done
        planned = None if self._expected is None else self._expected / max(progress.of, 1)
        if done == 0:
            return None if planned is None else planned * missing
        seen = (self._now() - self._began) / done
        if planned is None:
            return seen * missing
        trust = min(1.0, done / _ENOUGH)
        return (trust * seen + (1 - trust) * planned) * missing
