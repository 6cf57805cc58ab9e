"""When a turn is due: on every signal, at each evaluation interval, when a wait ends, and every N seconds if asked."""

from __future__ import annotations

import structlog

from matching.problem import ProblemError
from reactor.clock import Clock
from reactor.cycle import Stages, turn
from reactor.decision.decide import Trigger
from reactor.execution.outcome import Outcome
from reactor.record.metrics import Instruments
from reactor.state.moves import MoveState
from reactor.work_queue import WorkQueue

log = structlog.get_logger(__name__)

SHORTEST_PAUSE = 0.05


class Loop:
    def __init__(self, stages: Stages, work_queue: WorkQueue, clock: Clock, instruments: Instruments) -> None:
        self._stages = stages
        self._work_queue = work_queue
        self._clock = clock
        self._instruments = instruments
        self._look_again: float | None = None
        self._interval_since: float | None = None
        self.turns = 0

    async def run(self) -> None:
        """Until cancelled. Nothing is decided before every watched kind was listed."""
        await self._stages.state.until_synced()
        while True:
            await self.step(await self._work_queue.next(self._pause()))

    async def step(self, calls: dict[str, float]) -> None:
        """One turn; a problem that the planner refuses costs this turn, not the controller."""
        self.turns += 1
        try:
            outcome = await turn(self._stages, self._trigger())
        except ProblemError as error:
            log.exception("the planner refused the problem", error=str(error))
            self._look_again = None
            return
        waits = [wait.until for wait in outcome.decision.waits if wait.until is not None]
        self._look_again = min(waits, default=None)
        self._tell_reaction(outcome, calls)

    def _pause(self) -> float:
        """Seconds of silence after which somebody has to be looked at again."""
        now = self._clock.now()
        triggers = self._stages.settings().triggers
        due = [triggers.evaluation_interval]
        if self._look_again is not None:
            due.append(self._look_again - now)
        if self._interval_since is not None and triggers.rematch_interval > 0:
            due.append(self._interval_since + triggers.rematch_interval - now)
        return max(SHORTEST_PAUSE, min(due))

    def _trigger(self) -> Trigger:
        """KSE's cycle, when it is switched on and due; the unhappy otherwise."""
        interval = self._stages.settings().triggers.rematch_interval
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

    def _tell_reaction(self, outcome: Outcome, calls: dict[str, float]) -> None:
        now = self._clock.now()
        for run in outcome.moves:
            if run.state is MoveState.EVICTED and run.move.uid in calls:
                self._instruments.reaction_seconds.observe(now - calls[run.move.uid])
