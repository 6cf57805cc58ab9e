"""A node's CPU on the virtual clock: callbacks when jobs are done."""

from __future__ import annotations

from collections.abc import Callable

from loadtests.simulation.clock import VirtualClock
from loadtests.workloads.cpu import Completion, NodeCpu


class SimulatedCpu:
    def __init__(self, clock: VirtualClock, cores: float) -> None:
        self._clock = clock
        self._model = NodeCpu(cores)
        self._callbacks: dict[int, Callable[[], None]] = {}
        self._armed = float("inf")

    def add_pod(self, key: str, weight: float) -> None:
        self._model.add_pod(key, weight)

    def remove_pod(self, key: str) -> None:
        self._settle(self._model.remove_pod(key, self._clock.time))

    def submit(self, pod: str, work: float, done: Callable[[], None]) -> int:
        job, finished = self._model.submit(pod, work, self._clock.time)
        self._callbacks[job] = done
        self._settle(finished)
        return job

    def cancel(self, job: int) -> None:
        finished = self._model.cancel(job, self._clock.time)
        self._callbacks.pop(job, None)
        self._settle(finished)

    def used(self, pod: str) -> float:
        """CPU-seconds so far."""
        self._settle(self._model.advance(self._clock.time))
        return self._model.usage(pod).seconds

    def used_by_all(self) -> float:
        self._settle(self._model.advance(self._clock.time))
        return self._model.used

    def _settle(self, finished: list[Completion]) -> None:
        """Callbacks are run by the clock, never inside the call that noticed the completion."""
        for completion in finished:
            if (done := self._callbacks.pop(completion.job, None)) is not None:
                self._clock.after(0.0, done)
        due = self._model.next_event()
        if due is not None and (due < self._armed or self._armed <= self._clock.time):
            self._armed = due
            self._clock.at(due, self._fire)

    def _fire(self) -> None:
        if self._clock.time >= self._armed:
            self._armed = float("inf")
        self._settle(self._model.advance(self._clock.time))
