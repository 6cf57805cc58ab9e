"""The work queue: deduplicated keys that wake the controller, each with the time of its first signal."""

from __future__ import annotations

import asyncio
import contextlib

from reactor.clock import Clock

BATCH = 250
"""Objects that bulk work handles at once; between two batches it yields to a cycle."""
MAX_YIELD = 1.0
"""Seconds that bulk work waits for a cycle before it goes on."""


class WorkQueue:
    """A key means "evaluate this pod again". Equal keys collapse, and a burst of signals becomes one cycle."""

    def __init__(self, clock: Clock, *, gather: float = 0.01) -> None:
        """`gather`: seconds to wait for more signals of a burst."""
        self._clock = clock
        self._gather = gather
        self._keys: dict[str, float] = {}
        self._added = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._consumed = False
        """Whether anything takes keys from the queue."""

    def add(self, key: str) -> None:
        """Keeps the time of the first call, from which the reaction time is measured."""
        self._keys.setdefault(key, self._clock.now())
        self._added.set()
        if self._consumed:
            self._idle.clear()

    async def yield_to_cycle(self, seconds: float = MAX_YIELD) -> None:
        """For bulk work between two batches: a cycle that is due runs first, if there are cycles at all. Waits no
        longer than so many seconds."""
        await asyncio.sleep(0)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._idle.wait()

    async def next(self, timeout: float) -> dict[str, float]:
        """The keys and when they were first added; empty after `timeout` seconds without a signal. A cycle is under
        way until the next call."""
        self._consumed = True
        self._idle.set()
        if not self._added.is_set():
            waiter = asyncio.ensure_future(self._added.wait())
            sleeper = asyncio.ensure_future(self._clock.sleep(max(timeout, 0.0)))
            try:
                await asyncio.wait({waiter, sleeper}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                waiter.cancel()
                sleeper.cancel()
        self._idle.clear()
        if self._added.is_set():
            await self._clock.sleep(self._gather)
        keys, self._keys = self._keys, {}
        self._added.clear()
        return keys
