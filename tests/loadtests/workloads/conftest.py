from __future__ import annotations

from collections.abc import Callable

import pytest


class ManualCpu:
    """Jobs end when the test says so."""

    def __init__(self) -> None:
        self.jobs: dict[int, tuple[float, Callable[[], None]]] = {}
        self._count = 0

    def submit(self, pod: str, work: float, done: Callable[[], None]) -> int:
        self._count += 1
        self.jobs[self._count] = (work, done)
        return self._count

    def cancel(self, job: int) -> None:
        self.jobs.pop(job, None)

    def finish_next(self) -> None:
        job = min(self.jobs)
        self.jobs.pop(job)[1]()


class ManualClock:
    """Sleeping moves the time on at once."""

    def __init__(self) -> None:
        self.time = 1000.0

    def now(self) -> float:
        return self.time

    def monotonic(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.time += seconds


@pytest.fixture
def manual_cpu() -> ManualCpu:
    return ManualCpu()


@pytest.fixture
def manual_clock() -> ManualClock:
    return ManualClock()
