"""The CPU model on asyncio's clock: one timer for the next completion, callbacks instead of tasks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from loadtests.workloads.cpu import Completion, CpuUsage, NodeCpu

Done = Callable[[], None]


class LiveCpu:
    """Model time starts at zero when this is made, so that floats stay exact on machines that are up for months."""

    def __init__(self, cores: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._origin = self._loop.time()
        self._model = NodeCpu(cores)
        self._callbacks: dict[int, Done] = {}
        self._timer: asyncio.TimerHandle | None = None

    @property
    def cores(self) -> float:
        return self._model.cores

    def add_pod(self, key: str, weight: float, limit: float = float("inf")) -> None:
        self._model.add_pod(key, weight, limit)

    def remove_pod(self, key: str) -> None:
        self._settle(self._model.remove_pod(key, self._now()))

    def submit(self, pod: str, work: float, done: Done) -> int:
        job, finished = self._model.submit(pod, work, self._now())
        self._callbacks[job] = done
        self._settle(finished)
        return job

    def cancel(self, job: int) -> None:
        finished = self._model.cancel(job, self._now())
        self._callbacks.pop(job, None)
        self._settle(finished)

    def usage(self, pod: str) -> CpuUsage:
        self._settle(self._model.advance(self._now()))
        return self._model.usage(pod)

    def used(self) -> float:
        self._settle(self._model.advance(self._now()))
        return self._model.used

    def close(self) -> None:
        self._callbacks.clear()
        if self._timer is not None:
            self._timer.cancel()

    def _now(self) -> float:
        return self._loop.time() - self._origin

    def _settle(self, finished: list[Completion]) -> None:
        """Callbacks run from the loop, never inside the call that happened to notice the completion."""
        for completion in finished:
            if (done := self._callbacks.pop(completion.job, None)) is not None:
                self._loop.call_soon(done)
        self._arm()

    def _arm(self) -> None:
        due = self._model.next_event()
        if due is None:
            return
        when = self._origin + due
        if self._timer is not None:
            if self._timer.when() <= when:
                return
            self._timer.cancel()
        self._timer = self._loop.call_at(when, self._fire)

    def _fire(self) -> None:
        self._timer = None
        self._settle(self._model.advance(self._now()))
