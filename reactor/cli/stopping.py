"""Runs a coroutine until it ends or a signal stops the process. `loadtests` uses it, too."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine
from typing import Any


async def until_stopped(work: Coroutine[Any, Any, None]) -> bool:
    """True if SIGINT or SIGTERM ended it. Then the work was cancelled and has left all its contexts.

    An error of the work is raised.
    """
    job = asyncio.ensure_future(work)
    loop = asyncio.get_running_loop()
    signals = (signal.SIGINT, signal.SIGTERM)
    stopped = asyncio.Event()

    def stop() -> None:
        stopped.set()
        job.cancel()

    for number in signals:
        loop.add_signal_handler(number, stop)
    try:
        await asyncio.wait({job})
    finally:
        for number in signals:
            loop.remove_signal_handler(number)
        job.cancel()
        await asyncio.gather(job, return_exceptions=True)
    if not stopped.is_set():
        job.result()
    return stopped.is_set()
