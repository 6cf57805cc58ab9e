"""A costly view computed at most for a bounded share of the time, whatever the number of viewers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from reactor.clock import Clock

T = TypeVar("T")

REST_FACTOR = 9.0
"""After a computation of c seconds rest 9c: at most a tenth of a core goes into one view."""
LONGEST_REST = 30.0


class Paced(Generic[T]):
    """Never hands out a value whose computation began before the caller asked: a notified page sees the change."""

    def __init__(self, compute: Callable[[], Awaitable[T]], clock: Clock) -> None:
        self._compute = compute
        self._clock = clock
        self._lock = asyncio.Lock()
        self._begun = float("-inf")
        self._rest_until = float("-inf")
        self._value: T | None = None

    async def get(self) -> T:
        asked = self._clock.monotonic()
        async with self._lock:
            if self._value is not None and self._begun > asked:
                return self._value
            rest = self._rest_until - self._clock.monotonic()
            if rest > 0:
                await self._clock.sleep(rest)
            begun = self._clock.monotonic()
            value = await self._compute()
            ended = self._clock.monotonic()
            self._value, self._begun = value, begun
            self._rest_until = ended + min(REST_FACTOR * (ended - begun), LONGEST_REST)
            return value
