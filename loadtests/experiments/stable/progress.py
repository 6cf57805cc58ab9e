"""A bar with the time left, on a terminal; a line per run elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TextIO

from loadtests.experiments.stable.runner import StepProgress

_WIDTH = 30
_ENOUGH = 22
"""Steps after which only what was seen counts, not the plan: two runs."""


class ProgressBar:
    """The time left is first reckoned from the design, then from how long the steps really take."""

    def __init__(self, world: str, expected: float, now: Callable[[], float], out: TextIO = sys.stderr) -> None:
        self._world, self._expected, self._now, self._out = world, expected, now, out
        self._began = now()
        self._first: int | None = None

    def show(self, progress: StepProgress) -> None:
        if self._first is None:
            self._first = progress.done
        if self._out.isatty():
            self._out.write(f"\r\x1b[K{self.line(progress)}")
            if progress.done == progress.of:
                self._out.write("\n")
        elif progress.record is None:
            print(self.line(progress), file=self._out)
        self._out.flush()

    def line(self, progress: StepProgress) -> str:
        share = progress.done / progress.of
        filled = round(share * _WIDTH)
        rate = f" at {progress.record.paper_rate}" if progress.record is not None else ""
        doing = f"{progress.run.arm.name}, seed {progress.run.seed}{rate}"
        bar = "#" * filled + "." * (_WIDTH - filled)
        return f"{self._world} [{bar}] {share:4.0%}  {_clock(self.left(progress))} left  {doing}"

    def left(self, progress: StepProgress) -> float:
        done_now = progress.done - (self._first or 0)
        missing = progress.of - progress.done
        planned = self._expected / progress.of
        if done_now == 0:
            return planned * missing
        seen = (self._now() - self._began) / done_now
        trust = min(1.0, done_now / _ENOUGH)
        return (trust * seen + (1 - trust) * planned) * missing


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"
