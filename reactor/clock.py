"""The injected clock, so that tests and simulations run on virtual time."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime
from typing import Protocol


def rfc3339(at: float) -> str:
    """A time as Kubernetes writes it, in whole seconds."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class Clock(Protocol):
    def now(self) -> float:
        """Seconds since the epoch, for timestamps that are stored or compared with those of the cluster."""
        ...

    def monotonic(self) -> float:
        """Seconds that never go back, for deadlines and backoff."""
        ...

    async def sleep(self, seconds: float) -> None: ...


class SystemClock:
    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
