"""When a cycle runs: on every signal, at each evaluation interval, when a wait ends, and every rematch interval."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from reactor.clock import Clock
from reactor.cycle import CycleParts, run_cycle
from reactor.decision.decide import Trigger
from reactor.execution.cycle_outcome import Outcome
from reactor.record.failures import Failures
from reactor.record.heartbeat import Heartbeat
from reactor.state.moves import MoveState
from reactor.work_queue import WorkQueue

SHORTEST_PAUSE = 0.05
HEARTBEAT = 5.0
"""Seconds after which the loop shows that it runs, also when no cycle is due."""
GRACE = 120.0
"""Seconds that the calls of one cycle may take before it counts as stalled: an eviction has three attempts."""


class Loop:
    """`run` waits on the clock; on a virtual clock call `step` for signals and whenever `due_at` is reached."""

    def __init__(self, parts: CycleParts, work_queue: WorkQueue, clock: Clock, failures: Failures) -> None:
        self._parts = parts
        self._failures = failures
        self._retry_at = float("-inf")
        self._heartbeat = Heartbeat("loop of the cycles", clock)
        self._work_queue = work_queue
        self._clock = clock
        self._instruments = failures.instruments
        self._wait_ends: float | None = None
        self._interval_since: float | None = None
        self._stepped = clock.now()
        self.cycles = 0
        self.exclusive = asyncio.Lock()
        """Held during a cycle; a request holds it while its moves are carried out."""

    async def run(self) -> None:
        """Until cancelled. Nothing is decided before every watched kind was listed."""
        await self._parts.state.until_synced()
        while True:
            self._heartbeat.beat()
            if self.exclusive.locked():
                await self._clock.sleep(HEARTBEAT)
                continue
            pause = max(SHORTEST_PAUSE, self.due_at - self._clock.now())
            keys = await self._work_queue.next(min(pause, HEARTBEAT))
            if not keys and self._clock.now() < self.due_at:
                continue
            await self._clock.sleep(max(0.0, self._retry_at - self._clock.now()))
            async with self.exclusive:
                await self.step(keys)

    @property
    def stalled(self) -> str:
        """Why the process should be restarted; empty while the loop runs."""
        settings = self._parts.settings()
        return self._heartbeat.stalled(3 * settings.triggers.evaluation_interval + settings.planner.deadline + GRACE)

    @property
    def due_at(self) -> float:
        """When the next cycle runs if no signal comes before."""
        triggers = self._parts.settings().triggers
        due = [self._stepped + triggers.evaluation_interval]
        if self._wait_ends is not None:
            due.append(self._wait_ends)
        move_due = self._parts.executor.due_at(self._stepped)
        if move_due is not None:
            due.append(move_due)
        if self._interval_since is not None and triggers.rematch_interval > 0:
            due.append(self._interval_since + triggers.rematch_interval)
        return max(self._stepped + SHORTEST_PAUSE, min(due), self._retry_at)

    async def step(self, keys: Mapping[str, float]) -> Outcome | None:
        """One cycle. `keys` are the signals and when they came. An error costs one cycle: it is reported, there is no
        outcome, and the next cycle comes after a pause."""
        self.cycles += 1
        self._wait_ends = None
        try:
            outcome = await run_cycle(self._parts, self._trigger())
        except Exception as error:  # noqa: BLE001 - it is reported
            self._retry_at = self._clock.now() + self._failures.report("cycle", error)
            return None
        finally:
            self._stepped = self._clock.now()
        self._failures.succeeded("cycle")
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
            if move.state in (MoveState.EVICTED, MoveState.SURGED) and move.pod.uid in keys:
                self._instruments.reaction_seconds.observe(now - keys[move.pod.uid])
