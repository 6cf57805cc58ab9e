"""Time that only tests move."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

NOW = 1_700_000_000.0
_ROUNDING = 1e-6


class VirtualClock:
    """Sleepers wake, in order, when `advance` reaches them."""

    def __init__(self, now: float = NOW) -> None:
        self._now = now
        self._sleepers: list[tuple[float, asyncio.Future[None]]] = []

    def now(self) -> float:
        return self._now

    def monotonic(self) -> float:
        return self._now

    async def sleep(self, seconds: float) -> None:
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._sleepers.append((self._now + max(0.0, seconds), woken))
        await woken

    def set(self, now: float) -> None:
        """Jump without waking anybody: for code that does not sleep."""
        self._now = now

    async def settle(self) -> None:
        """Lets every task run until it waits for something else than a turn of the event loop."""
        for _ in range(20):
            await asyncio.sleep(0)

    async def advance(self, seconds: float) -> None:
        end = self._now + seconds + _ROUNDING
        await self.settle()
        while due := [at for at, woken in self._sleepers if at <= end and not woken.done()]:
            self._now = max(self._now, min(due))
            for at, woken in self._sleepers:
                if at <= self._now and not woken.done():
                    woken.set_result(None)
            self._sleepers = [(at, woken) for at, woken in self._sleepers if not woken.done()]
            await self.settle()
        self._now = end - _ROUNDING


async def eventually(holds: Callable[[], object], seconds: float = 40.0) -> None:
    """For what a thread or a socket brings about."""
    async with asyncio.timeout(seconds):
        while not holds():
            await asyncio.sleep(0.002)
