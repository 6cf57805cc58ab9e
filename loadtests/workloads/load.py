"""A bounded open-loop load generator: requests start when they are due, however slow the answers are."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Iterator
from dataclasses import dataclass

from loadtests.workloads.arrivals import AppLoad, Arrival, arrival_times
from loadtests.workloads.http_client import Ending, http_get
from loadtests.workloads.load_summary import LoadLog, Outcome, Sample
from loadtests.workloads.targets import Target, Targets
from reactor.clock import Clock

_OUTCOMES = {
    Ending.ANSWERED: Outcome.ERROR_STATUS,
    Ending.TIMEOUT: Outcome.TIMEOUT,
    Ending.REFUSED: Outcome.REFUSED,
    Ending.UNREACHABLE: Outcome.REFUSED,
    Ending.CLOSED: Outcome.CLOSED,
    Ending.RESET: Outcome.CLOSED,
}


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
            self._fail(app, due, Outcome.NO_READY_POD)
        elif len(self._in_flight) >= self._plan.max_in_flight:
            self._fail(app, due, Outcome.TOO_MANY_IN_FLIGHT)
        else:
            task = asyncio.get_running_loop().create_task(self._ask(app, target, begin, due))
            self._in_flight.add(task)
            task.add_done_callback(self._in_flight.discard)

    def _fail(self, app: str, due: float, outcome: Outcome) -> None:
        self._log.add(Sample(app, due, self._plan.timeout, outcome))

    async def _ask(self, app: str, target: Target, begin: float, due: float) -> None:
        answer = await http_get(target.host, target.port, self._plan.path, self._plan.timeout)
        if not answer.ok:
            self._fail(app, due, _OUTCOMES[answer.ending])
            return
        self._log.add(Sample(app, due, self._clock.monotonic() - begin - due, Outcome.OK))
