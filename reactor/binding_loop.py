"""When pending pods are bound: at once when one of ours appears or changes, and when room may have become free."""

from __future__ import annotations

import asyncio

import structlog

from reactor.binding import BindingParts, ClaimedBindings, bind, place_pending
from reactor.clock import Clock
from reactor.execution.cycle_outcome import Placement
from reactor.work_queue import WorkQueue

log = structlog.get_logger(__name__)

CHECK_EVERY = 1.0
"""Seconds after which the loop looks for freed room and ended backoffs."""


class BindingLoop:
    """`run` waits on the clock; on a virtual clock call `step`. Nothing that a cycle does can delay it."""

    def __init__(self, parts: BindingParts, work_queue: WorkQueue, clock: Clock) -> None:
        self._parts = parts
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
                keys = await self._work_queue.next(CHECK_EVERY)
                if not keys and not self._due():
                    continue
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

    async def _place(self) -> ClaimedBindings | None:
        self._placed_at, self._room_changes = self._clock.now(), self._parts.state.room_changes
        claimed = await place_pending(self._parts)
        plan = claimed.placement.plan if claimed is not None else None
        self._waiting = frozenset(left.uid for left in plan.unplaced) if plan is not None else frozenset()
        return claimed

    async def _bind(self, claimed: ClaimedBindings) -> Placement:
        return await bind(self._parts, claimed)

    def _due(self) -> bool:
        """Pods that fit nowhere are placed again when room may have become free, and at each evaluation interval."""
        state, now = self._parts.state, self._clock.now()
        if not state.pending:
            return False
        backoffs = self._parts.binder.backoffs.values()
        if any(self._placed_at < until <= now for until in backoffs):
            return True
        if self._waiting and state.room_changes != self._room_changes:
            return True
        return now >= self._placed_at + self._parts.settings().triggers.evaluation_interval
