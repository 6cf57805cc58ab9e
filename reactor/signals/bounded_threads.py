"""Blocking calls beside the event loop: few at a time, each with a deadline, none that can hold up the exit."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from functools import partial
from typing import Generic, TypeVar

T = TypeVar("T")


class Exhausted(Exception):
    """All threads are held by calls that did not end."""


class _Call(Generic[T]):
    def __init__(self, work: Callable[[], T], done: Callable[[], None]) -> None:
        self._work = work
        self._done = done
        self._loop = asyncio.get_running_loop()
        self.result: asyncio.Future[T] = self._loop.create_future()

    def run(self) -> None:
        try:
            value = self._work()
        except Exception as error:  # noqa: BLE001 - whatever it is belongs to the one who waits
            self._report(partial(self.result.set_exception, error))
        else:
            self._report(partial(self.result.set_result, value))

    def _report(self, tell: Callable[[], None]) -> None:
        def on_loop() -> None:
            self._done()
            if not self.result.done():
                tell()

        # After its deadline nobody waits for a call any more, and the loop itself may be closed.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(on_loop)


class BoundedThreads:
    """concurrent.futures would join its threads at exit, so a server that hangs would hang us as well."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._turn = asyncio.Semaphore(limit)
        self._busy = 0

    @property
    def busy(self) -> int:
        return self._busy

    async def run(self, work: Callable[[], T], abort: Callable[[], None], deadline: float) -> T:
        """Raises TimeoutError after `deadline` seconds, having called `abort`, which should make `work` end."""
        async with self._turn:
            if self._busy >= self._limit:
                raise Exhausted
            call = _Call(work, self._end)
            self._busy += 1
            threading.Thread(target=call.run, name="rematch-metrics", daemon=True).start()
            try:
                async with asyncio.timeout(deadline):
                    return await call.result
            finally:
                if not call.result.done() or call.result.cancelled():
                    abort()

    def _end(self) -> None:
        self._busy -= 1
