"""An event loop in a thread of its own, for callers that know no asyncio."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

from reactor.errors import ClusterError

T = TypeVar("T")


class LoopThread:
    """A daemon: a script that ends without closing it is not held up."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="rematch", daemon=True)
        self._thread.start()

    def call(self, work: Coroutine[Any, Any, T], what: str, deadline: float) -> T:
        """Waits for the result. After the deadline, or when the caller is interrupted, the work is cancelled."""
        waiting = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return waiting.result(deadline)
        except concurrent.futures.TimeoutError:
            if waiting.done():
                raise
            raise ClusterError(f"{what} has not ended within {deadline:g} s") from None
        finally:
            waiting.cancel()

    def close(self, deadline: float) -> None:
        """Cancels what still runs."""
        asyncio.run_coroutine_threadsafe(_cancel_others(), self._loop).result(deadline)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(deadline)
        self._loop.close()


async def _cancel_others() -> None:
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
