"""Compiles the matching's kernels once the cluster is large enough to need them, off the event loop and before the
decision that would otherwise wait for a compiler. A small cluster is spared their memory."""

from __future__ import annotations

import asyncio

import structlog

from matching.compilation import LARGE, warm_up
from reactor.clock import Clock
from reactor.cluster.kinds import Kind
from reactor.state.live_state import State

log = structlog.get_logger(__name__)

LOOK_AGAIN = 60.0
"""Seconds after which a cluster that was small is looked at again."""


class Warming:
    def __init__(self, state: State, clock: Clock) -> None:
        self._state = state
        self._clock = clock
        self._warm = False
        self._one_at_a_time = asyncio.Lock()

    async def run(self) -> None:
        """Until it is warm; before the first decision somebody else has looked."""
        while not self._warm:
            await self._clock.sleep(LOOK_AGAIN)
            await self.look()

    async def look(self) -> None:
        async with self._one_at_a_time:
            if self._warm or not self._large():
                return
            seconds = await asyncio.to_thread(warm_up)
            self._warm = True
        if seconds is None:
            log.info("numba is not installed: plans of a cluster of this size take longer", extra="fast")
        else:
            log.info("matching kernels are compiled", seconds=round(seconds, 2))

    def _large(self) -> bool:
        mirror = self._state.mirror
        return len(mirror.records(Kind.PODS)) * len(mirror.records(Kind.NODES)) >= LARGE
