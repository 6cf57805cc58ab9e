"""The injected clock, so that tests and simulations run on virtual time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Protocol


def rfc3339(at: float) -> str:
    """A time as Kubernetes writes it, in whole seconds."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class Clock(Protocol):
    def now(self) -> float:
        """Seconds since the epoch, for timestamps that are stored or compared with those of the cluster."""
        ...

    def monotonic(self) -> float:
        """Seconds that never go back and go on while the machine is suspended, for deadlines, leases and backoff."""
        ...

    async def sleep(self, seconds: float) -> None: ...


SLEW = 0.25
"""By how much faster or slower `SystemClock.now` runs than real time while it follows a step of the wall clock."""


def _boottime() -> float:
    """CLOCK_MONOTONIC stops while the machine is suspended. Where there is no other, it has to do."""
    boottime = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if boottime is None else time.clock_gettime(boottime)


class SystemClock:
    """A step of the wall clock changes the rate of `now`, never its value at once: stored times stay comparable, so
    that a step neither ends nor prolongs a cooldown, a deadline or an assumed binding by the size of the step."""

    def __init__(self, wall: Callable[[], float] = time.time, elapsed: Callable[[], float] = _boottime) -> None:
        self._wall = wall
        self._elapsed = elapsed
        self._last = (elapsed(), wall())
        """When `now` was asked last, and what it answered. One attribute: threads read and replace it as a whole."""

    def now(self) -> float:
        asked, answered = self._last
        elapsed = self._elapsed()
        passed = max(0.0, elapsed - asked)
        steady = answered + passed
        most = SLEW * passed
        now = steady + min(most, max(-most, self._wall() - steady))
        self._last = (elapsed, now)
        return now

    @property
    def behind_wall(self) -> float:
        """Seconds that `now` is behind the wall clock; more than a moment only after a step."""
        return self._wall() - self.now()

    def monotonic(self) -> float:
        return self._elapsed()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
