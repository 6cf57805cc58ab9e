"""What wakes the controller: deduplicated keys, and the moment at which somebody wanted to be looked at again."""

from __future__ import annotations

import asyncio

from reactor.clock import Clock


class Attention:
    """Signals are keys ("look at this pod again"); equal keys collapse, and a burst becomes one cycle."""

    def __init__(self, clock: Clock, *, gather: float = 0.01) -> None:
        self._clock = clock
        self._gather = gather
        self._keys: dict[str, float] = {}
        self._called = asyncio.Event()

    def look_at(self, key: str) -> None:
        """Keeps the time of the first call, so that the reaction time can be told."""
        self._keys.setdefault(key, self._clock.now())
        self._called.set()

    async def next(self, timeout: float) -> dict[str, float]:
        """The keys called for and since when; empty when `timeout` seconds passed in silence."""
        if not self._called.is_set():
            waiter = asyncio.ensure_future(self._called.wait())
            sleeper = asyncio.ensure_future(self._clock.sleep(max(timeout, 0.0)))
            try:
                await asyncio.wait({waiter, sleeper}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                waiter.cancel()
                sleeper.cancel()
        if self._called.is_set():
            await self._clock.sleep(self._gather)
        keys, self._keys = self._keys, {}
        self._called.clear()
        return keys
