from __future__ import annotations

import asyncio

import pytest


class SteppedClock:
    """Time goes on only by `advance`, which returns when everybody who was woken sleeps again."""

    def __init__(self) -> None:
        self._now = 1000.0
        self._sleeper: asyncio.Future[None] | None = None
        self._asleep = asyncio.Event()

    def now(self) -> float:
        return self._now

    def monotonic(self) -> float:
        return self._now

    async def sleep(self, seconds: float) -> None:
        wake_at = self._now + seconds
        while self._now < wake_at:
            self._sleeper = asyncio.get_running_loop().create_future()
            self._asleep.set()
            await self._sleeper

    async def advance(self, seconds: float) -> None:
        await self._asleep.wait()
        self._asleep.clear()
        self._now += seconds
        assert self._sleeper is not None
        self._sleeper.set_result(None)
        await self._asleep.wait()


@pytest.fixture
async def clock() -> SteppedClock:
    return SteppedClock()
