"""When pending pods are bound: at once when one of ours appears or changes, and when room may have become free."""

from __future__ import annotations

import asyncio

from reactor.binding import BindingParts, ClaimedBindings, bind, place_pending
from reactor.clock import Clock
from reactor.execution.cycle_outcome import Placement
from reactor.record.failures import Failures
from reactor.record.heartbeat import Heartbeat
from reactor.settings.model import Mode
from reactor.work_queue import WorkQueue

CHECK_EVERY = 1.0
"""Seconds after which the loop looks for freed room and ended backoffs."""
LATE_AFTER = 30.0
"""Seconds after which the controller is not ready while a pod that may fit somewhere is not bound."""
STALLED_AFTER = 60.0
"""Twice the longest pause after an error."""


class BindingLoop:
    """`run` waits on the clock; on a virtual clock call `step`. Nothing that a cycle does can delay it."""

    def __init__(self, parts: BindingParts, work_queue: WorkQueue, clock: Clock, failures: Failures) -> None:
        self._parts = parts
        self._failures = failures
        self._retry_at = float("-inf")
        self._heartbeat = Heartbeat("binding loop", clock)
        self._since: dict[str, float] = {}
        """By UID: since when a pod that may fit somewhere waits for its binding."""
        self._work_queue = work_queue
        self._clock = clock
        self._placed_at = float("-inf")
        self._room_changes = -1
        self._waiting: frozenset[str] = frozenset()
        """UIDs of the pods that the last pass left without a node."""

    async def run(self) -> None:
        """Until cancelled. Bindings are sent while the next pods are placed."""
        await self._parts.state.until_synced()
        async with asyncio.TaskGroup() as sending:
            while True:
                self._heartbeat.beat()
                keys = await self._work_queue.next(CHECK_EVERY)
                if not keys and not self._due():
                    continue
                await self._clock.sleep(max(0.0, self._retry_at - self._clock.now()))
                claimed = await self._place()
                if claimed is not None:
                    sending.create_task(self._bind(claimed))

    def wake(self) -> None:
        """Pods may be bound now that could not be before."""
        self._work_queue.add("wake")

    async def step(self) -> Placement | None:
        """One pass, with its bindings. None when no pod waits for us."""
        claimed = await self._place()
        return await self._bind(claimed) if claimed is not None else None

    @property
    def stalled(self) -> str:
        """Why the process should be restarted; empty while the loop runs."""
        return self._heartbeat.stalled(STALLED_AFTER)

    def late(self) -> list[str]:
        """Pods that may fit somewhere and were not bound in time."""
        if self._parts.settings().mode is Mode.OBSERVE:
            return []
        now, found = self._clock.monotonic(), []
        for uid, since in self._since.items():
            pod = self._parts.state.mirror.pod(uid)
            if pod is not None and pod.node is None and now - since >= LATE_AFTER:
                found.append(
                    f"{pod.key} waits for its binding for {now - since:.0f} s, and is not known to fit nowhere"
                )
        return found

    async def _place(self) -> ClaimedBindings | None:
        self._placed_at, self._room_changes = self._clock.now(), self._parts.state.room_changes
        self._note_waiting()
        try:
            claimed = await place_pending(self._parts)
        except Exception as error:  # noqa: BLE001 - it is reported
            self._retry_at = self._clock.now() + self._failures.report("binding", error)
            return None
        self._failures.succeeded("binding")
        placement = claimed.placement if claimed is not None else None
        plan = placement.plan if placement is not None else None
        self._waiting = frozenset(left.uid for left in plan.unplaced) if plan is not None else frozenset()
        unsupported = {pod.uid for pod in placement.unsupported} if placement is not None else set()
        self._since = {uid: at for uid, at in self._since.items() if uid not in self._waiting | unsupported}
        return claimed

    async def _bind(self, claimed: ClaimedBindings) -> Placement | None:
        try:
            return await bind(self._parts, claimed)
        except Exception as error:  # noqa: BLE001 - it is reported
            self._failures.report("binding", error)
            return None

    def _note_waiting(self) -> None:
        waiting = self._parts.state.pods_waiting_for(self._parts.settings().scheduler_name)
        now = self._clock.monotonic()
        self._since = {uid: self._since.get(uid, now) for uid in waiting}

    def _due(self) -> bool:
        """Pods that fit nowhere are placed again when room may have become free, and at each evaluation interval."""
        state, now = self._parts.state, self._clock.now()
        if not state.pending:
            return False
        if self._placed_at < self._retry_at:  # the last pass failed
            return True
        backoffs = self._parts.binder.backoffs.values()
        if any(self._placed_at < until <= now for until in backoffs):
            return True
        if self._waiting and state.room_changes != self._room_changes:
            return True
        return now >= self._placed_at + self._parts.settings().triggers.evaluation_interval
