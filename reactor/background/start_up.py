"""Prepares the process for a large cluster: compiled kernels, and a garbage collector that skips the records."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable

import structlog

from matching.compilation import LARGE, warm_up
from reactor.clock import Clock
from reactor.cluster.kinds import Kind
from reactor.settings.model import Scope, Settings
from reactor.state.live_state import State

log = structlog.get_logger(__name__)

CHECK_EVERY = 60.0
"""Seconds after which the size of the cluster is checked again."""

_YOUNG_OBJECTS = 50_000
"""A plan of a large cluster makes some hundred thousand objects, most of which are freed by reference count."""


_PODS_PER_UNHAPPY_ONE = 20
"""Where only unhappy pods are matched, room is made for one of so many pods to be unhappy at once. If there are more,
the kernels are loaded by the plan that needs them."""


class KernelCompilation:
    """Compiles the matching kernels in a thread once the cluster is large enough to need them, so that no decision
    waits for the compiler. Where few pods are matched at once, nobody pays for their memory."""

    def __init__(self, state: State, clock: Clock, settings: Callable[[], Settings] = Settings) -> None:
        self._state = state
        self._clock = clock
        self._settings = settings
        self._compiled = False
        self._lock = asyncio.Lock()

    async def run(self) -> None:
        """Until they are compiled."""
        while not self._compiled:
            await self._clock.sleep(CHECK_EVERY)
            await self.compile_if_large()

    async def compile_if_large(self) -> None:
        async with self._lock:
            if self._compiled or not self._large():
                return
            seconds = await asyncio.to_thread(warm_up)
            self._compiled = True
        if seconds is None:
            log.info("numba is not installed: plans of a cluster of this size take longer", extra="fast")
        else:
            log.info("matching kernels are compiled", seconds=round(seconds, 2))

    def _large(self) -> bool:
        mirror, planner = self._state.mirror, self._settings().planner
        narrow = planner.name == "stable" and planner.scope in (Scope.UNHAPPY, Scope.AFFECTED)
        matched = len(mirror.records(Kind.PODS)) // (_PODS_PER_UNHAPPY_ONE if narrow else 1)
        return matched * len(mirror.records(Kind.NODES)) >= LARGE


def freeze_heap() -> None:
    """Excludes all objects that are alive now from garbage collection: on a large cluster one pass over them takes
    longer than a plan. Reference counts still free them."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNG_OBJECTS)
