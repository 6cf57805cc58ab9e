"""What wakes the controller: deduplicated keys, and the moment at which somebody wanted to be looked at again."""

from __future__ import annotations

import asyncio
import contextlib

from reactor.clock import Clock

PIECE = 1_000
"""Objects that bulk work takes at once; between two pieces it gives way."""
LONGEST_WAY = 1.0
"""Seconds that bulk work waits for a turn before it goes on beside it."""


class WorkQueue:
    """Signals are keys ("look at this pod again"); equal keys collapse, and a burst becomes one cycle."""

    def __init__(self, clock: Clock, *, gather: float = 0.01) -> None:
        self._clock = clock
        self._gather = gather
        self._keys: dict[str, float] = {}
        self._called = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._followed = False

    def add(self, key: str) -> None:
        """Keeps the time of the first call, so that the reaction time can be told."""
        self._keys.setdefault(key, self._clock.now())
        self._called.set()
        if self._followed:
            self._idle.clear()

    async def yield_to_cycle(self) -> None:
        """For bulk work between two pieces: whoever called is looked at first, if anybody follows the calls at all."""
        await asyncio.sleep(0)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LONGEST_WAY):
                await self._idle.wait()

    async def next(self, timeout: float) -> dict[str, float]:
        """The keys called for and since when; empty when `timeout` seconds passed in silence. From then on until it is
        asked for again a turn is under way."""
        self._followed = True
        self._idle.set()
        if not self._called.is_set():
            waiter = asyncio.ensure_future(self._called.wait())
            sleeper = asyncio.ensure_future(self._clock.sleep(max(timeout, 0.0)))
            try:
                await asyncio.wait({waiter, sleeper}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                waiter.cancel()
                sleeper.cancel()
        self._idle.clear()
        if self._called.is_set():
            await self._clock.sleep(self._gather)
        keys, self._keys = self._keys, {}
        self._called.clear()
        return keys
