"""Keys to look at: equal ones collapse, and the one who works through them never blocks the server for long."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from loadtests.embedded.api_errors import ApiError

K = TypeVar("K", bound=Hashable)

_BATCH = 50
_RETRY = 0.05


class WorkQueue(Generic[K]):
    def __init__(self, reconcile: Callable[[K], None]) -> None:
        self._reconcile = reconcile
        self._keys: dict[K, None] = {}
        self._wake = asyncio.Event()
        self._timers: dict[K, asyncio.TimerHandle] = {}

    def add(self, key: K) -> None:
        self._keys[key] = None
        self._wake.set()

    def add_after(self, key: K, seconds: float) -> None:
        """Looks at the key again by then at the latest; of several waits the shortest counts."""
        loop = asyncio.get_running_loop()
        known = self._timers.get(key)
        if known is not None:
            if known.when() <= loop.time() + seconds:
                return
            known.cancel()
        self._timers[key] = loop.call_later(seconds, self._due, key)

    def _due(self, key: K) -> None:
        del self._timers[key]
        self.add(key)

    async def run(self) -> None:
        try:
            while True:
                await self._wake.wait()
                self._wake.clear()
                while self._keys:
                    self._work(_BATCH)
                    await asyncio.sleep(0)
        finally:
            for timer in self._timers.values():
                timer.cancel()

    def _work(self, limit: int) -> None:
        for _ in range(min(limit, len(self._keys))):
            key = next(iter(self._keys))
            del self._keys[key]
            try:
                self._reconcile(key)
            except ApiError:
                self.add_after(key, _RETRY)  # a write lost a race, or a name clashed: look again
