"""A virtual clock: it jumps to the next action that is due and runs it."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable

Action = Callable[[], None]
EPOCH = 1_700_000_000.0
"""Any date will do; a fixed one makes every run the same."""


class VirtualClock:
    """Also the reactor's clock. Only `step` lets time pass, so `sleep` never waits."""

    def __init__(self) -> None:
        self.time = 0.0
        self._due: list[tuple[float, int, Action]] = []
        self._number = 0

    def at(self, when: float, action: Action) -> None:
        self._number += 1
        heapq.heappush(self._due, (max(when, self.time), self._number, action))

    def after(self, seconds: float, action: Action) -> None:
        self.at(self.time + seconds, action)

    @property
    def next_due(self) -> float:
        return self._due[0][0] if self._due else float("inf")

    def step(self, until: float) -> bool:
        """The next thing that is due by then; False when there is none and the time has come."""
        if not self._due or self._due[0][0] > until:
            self.time = until
            return False
        self.time, _, action = heapq.heappop(self._due)
        action()
        return True

    def now(self) -> float:
        return EPOCH + self.time

    def monotonic(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        del seconds
        await asyncio.sleep(0)
