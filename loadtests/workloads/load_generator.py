"""A bounded open-loop load generator: requests start when they are due, however slow the responses are."""

from __future__ import annotations

import asyncio
import heapq
import random
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from loadtests.workloads.http_client import Ending, http_get
from loadtests.workloads.samples import LoadLog, RequestOutcome, RequestSample
from loadtests.workloads.targets import Target, Targets
from reactor.clock import Clock

_OUTCOMES = {
    Ending.ANSWERED: RequestOutcome.ERROR_STATUS,
    Ending.TIMEOUT: RequestOutcome.TIMEOUT,
    Ending.REFUSED: RequestOutcome.REFUSED,
    Ending.UNREACHABLE: RequestOutcome.REFUSED,
    Ending.CLOSED: RequestOutcome.CLOSED,
    Ending.RESET: RequestOutcome.CLOSED,
}


class Arrival(StrEnum):
    POISSON = "poisson"
    CONSTANT = "constant"


@dataclass(frozen=True, slots=True)
class RateStep:
    """From `start` (seconds into the run) on, `rate` requests per second."""

    start: float
    rate: float


@dataclass(frozen=True, slots=True)
class AppLoad:
    app: str
    steps: tuple[RateStep, ...]
    """By rising start; the last one holds to the end."""


def arrival_times(load: AppLoad, arrival: Arrival, seed: int, duration: float) -> Iterator[float]:
    """Seconds into the run. A unit-rate process is stretched by the rates, so a step changes nothing before it."""
    source = random.Random(f"{seed}/{load.app}")
    target = source.expovariate(1.0) if arrival is Arrival.POISSON else source.random()
    ends = [*(min(step.start, duration) for step in load.steps[1:]), duration]
    expected = 0.0
    for step, end in zip(load.steps, ends, strict=True):
        begin = min(step.start, duration)
        expected_here = step.rate * (end - begin)
        while target < expected + expected_here:
            yield begin + (target - expected) / step.rate
            target += source.expovariate(1.0) if arrival is Arrival.POISSON else 1.0
        expected += expected_here


@dataclass(frozen=True, slots=True)
class LoadPlan:
    apps: tuple[AppLoad, ...]
    seed: int
    duration: float
    arrival: Arrival = Arrival.POISSON
    timeout: float = 2.0
    max_in_flight: int = 1024
    path: str = "/"

    def arrivals(self) -> Iterator[tuple[float, str]]:
        """(seconds into the run, app) of every request, in order."""
        return heapq.merge(*(self._arrivals_of(load) for load in self.apps))

    def _arrivals_of(self, load: AppLoad) -> Iterator[tuple[float, str]]:
        for at in arrival_times(load, self.arrival, self.seed, self.duration):
            yield at, load.app


class LoadGenerator:
    def __init__(self, plan: LoadPlan, targets: Targets, log: LoadLog, clock: Clock) -> None:
        self._plan = plan
        self._targets = targets
        self._log = log
        self._clock = clock
        self._in_flight: set[asyncio.Task[None]] = set()
        self.lateness = 0.0
        """The longest a request started after it was due: above a few ms the machine, not the app, is the limit."""

    async def run(self) -> None:
        """Until the last request is answered; cancelling it ends the requests in flight, which are not counted."""
        try:
            await self._dispatch()
            if self._in_flight:
                await asyncio.gather(*self._in_flight)
        finally:
            unfinished = list(self._in_flight)
            for task in unfinished:
                task.cancel()
            await asyncio.gather(*unfinished, return_exceptions=True)

    async def _dispatch(self) -> None:
        begin = self._clock.monotonic()
        for due, app in self._plan.arrivals():
            wait = begin + due - self._clock.monotonic()
            if wait > 0:
                await self._clock.sleep(wait)
            else:
                self.lateness = max(self.lateness, -wait)
            self._launch(app, begin, due)

    def _launch(self, app: str, begin: float, due: float) -> None:
        target = self._targets.pick(app)
        if target is None:
            self._fail(app, due, RequestOutcome.NO_READY_POD)
        elif len(self._in_flight) >= self._plan.max_in_flight:
            self._fail(app, due, RequestOutcome.TOO_MANY_IN_FLIGHT)
        else:
            task = asyncio.get_running_loop().create_task(self._ask(app, target, begin, due))
            self._in_flight.add(task)
            task.add_done_callback(self._in_flight.discard)

    def _fail(self, app: str, due: float, outcome: RequestOutcome) -> None:
        self._log.add(RequestSample(app, due, self._plan.timeout, outcome))

    async def _ask(self, app: str, target: Target, begin: float, due: float) -> None:
        answer = await http_get(target.host, target.port, self._plan.path, self._plan.timeout)
        if not answer.ok:
            self._fail(app, due, _OUTCOMES[answer.ending])
            return
        self._log.add(RequestSample(app, due, self._clock.monotonic() - begin - due, RequestOutcome.OK))
