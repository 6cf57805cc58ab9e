"""Time in a replay."""

from __future__ import annotations

MINUTE = 60


class ReplayClock:
    """Moved by the replay alone."""

    def __init__(self, now: float) -> None:
        self.time = now

    def now(self) -> float:
        return self.time

    def monotonic(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        raise AssertionError(f"nothing sleeps in a replay, but {seconds:g} s were asked for")
