"""Runs a coroutine until it ends or a signal stops the process. `loadtests` uses it, too."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Coroutine
from typing import Any

EXIT_HUNG = 70
"""The exit code of a process that had to be ended while something hung."""


async def until_stopped(work: Coroutine[Any, Any, None], *, grace: float | None = None) -> bool:
    """True if SIGINT or SIGTERM ended it. Then the work was cancelled and has left all its contexts.

    An error of the work is raised. With `grace` the process ends so many seconds after the signal, whatever hangs.
    """
    job = asyncio.ensure_future(work)
    loop = asyncio.get_running_loop()
    signals = (signal.SIGINT, signal.SIGTERM)
    stopped = asyncio.Event()

    def stop() -> None:
        if grace is not None and not stopped.is_set():
            _end_after(grace)
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


def _end_after(seconds: float) -> None:
    """By a thread that does not keep the process from ending by itself."""

    def end() -> None:
        print(f"did not stop within {seconds:g} s: ended", file=sys.stderr, flush=True)
        os._exit(EXIT_HUNG)

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()
