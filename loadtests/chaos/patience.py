"""Calls of the harness itself: the API server is restarted by faults, and the harness must get through."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from reactor.errors import ClusterError, Unreachable

T = TypeVar("T")
_SECONDS = 60.0
_PAUSE = 0.3


async def insist(call: Callable[[], Awaitable[T]], seconds: float = _SECONDS) -> T:
    """Repeats a call that is safe to repeat until it is answered; errors of other kinds are raised."""
    try:
        async with asyncio.timeout(seconds):
            while True:
                try:
                    return await call()
                except Unreachable:
                    await asyncio.sleep(_PAUSE)
    except TimeoutError as error:
        raise ClusterError(f"the API server did not answer within {seconds:g} s") from error
