"""When a cycle runs: on every signal, at each evaluation interval, when a wait ends, and every rematch interval."""

from __future__ import annotations

from collections.abc import Mapping

import structlog

from matching.problem import ProblemError
from reactor.clock import Clock
from reactor.cycle import CycleParts, run_cycle
from reactor.decision.decide import Trigger
from reactor.execution.cycle_outcome import Outcome
from reactor.record.metrics import Instruments
from reactor.state.moves import MoveState
from reactor.work_queue import WorkQueue

log = structlog.get_logger(__name__)

SHORTEST_PAUSE = 0.05


class Loop:
    """`run` waits on the clock; on a virtual clock call `step` for signals and whenever `due_at` is reached."""

    def __init__(self, parts: CycleParts, work_queue: WorkQueue, clock: Clock, instruments: Instruments) -> None:
        self._parts = parts
        self._work_queue = work_queue
        self._clock = clock
        self._instruments = instruments
        self._wait_ends: float | None = None
        self._interval_since: float | None = None
        self._stepped = clock.now()
        self.cycles = 0

    async def run(self) -> None:
        """Until cancelled. Nothing is decided before every watched kind was listed."""
        await self._parts.state.until_synced()
        while True:
            pause = max(SHORTEST_PAUSE, self.due_at - self._clock.now())
            await self.step(await self._work_queue.next(pause))

    @property
    def due_at(self) -> float:
        """When the next cycle runs if no signal comes before."""
        triggers = self._parts.settings().triggers
        due = [self._stepped + triggers.evaluation_interval]
        if self._wait_ends is not None:
            due.append(self._wait_ends)
        if self._interval_since is not None and triggers.rematch_interval > 0:
            due.append(self._interval_since + triggers.rematch_interval)
        return max(self._stepped + SHORTEST_PAUSE, min(due))

    async def step(self, keys: Mapping[str, float]) -> Outcome | None:
        """One cycle. `keys` are the signals and when they came. A problem that the planner refuses costs one cycle:
        then there is no outcome."""
        self.cycles += 1
        self._wait_ends = None
        try:
            outcome = await run_cycle(self._parts, self._trigger())
        except ProblemError as error:
            log.exception("the planner refused the problem", error=str(error))
            return None
        finally:
            self._stepped = self._clock.now()
        self._wait_ends = min((wait.until for wait in outcome.decision.waits if wait.until is not None), default=None)
        self._observe_reaction(outcome, keys)
        return outcome

    def _trigger(self) -> Trigger:
        """The rematch interval if it is set and over, else the unhappy pods."""
        interval = self._parts.settings().triggers.rematch_interval
        now = self._clock.now()
        if interval <= 0:
            self._interval_since = None
            return Trigger.UNHAPPY
        if self._interval_since is None:
            self._interval_since = now
        if now < self._interval_since + interval:
            return Trigger.UNHAPPY
        self._interval_since = now
        return Trigger.INTERVAL

    def _observe_reaction(self, outcome: Outcome, keys: Mapping[str, float]) -> None:
        now = self._clock.now()
        for move in outcome.moves:
            if move.state is MoveState.EVICTED and move.pod.uid in keys:
                self._instruments.reaction_seconds.observe(now - keys[move.pod.uid])
