"""Time as a value that is handed in, so that tests and simulations run on their own."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime
from typing import Protocol


def rfc3339(at: float) -> str:
    """The way Kubernetes writes a time, to the second."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class Clock(Protocol):
    def now(self) -> float:
        """Seconds since the epoch: for what is recorded and compared with the cluster's timestamps."""
        ...

    def monotonic(self) -> float:
        """Seconds that never jump: for deadlines and backoff."""
        ...

    async def sleep(self, seconds: float) -> None: ...


class SystemClock:
    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
