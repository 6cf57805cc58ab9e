"""Prepares the process for a large cluster: compiled kernels, and a garbage collector that skips the records."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import platform
from collections.abc import Awaitable, Callable

import structlog

from matching.compilation import COMMAND, LARGE, only_on_request, warm_up
from reactor.clock import Clock
from reactor.cluster.kinds import Kind
from reactor.settings.model import Scope, Settings
from reactor.state.live_state import State

log = structlog.get_logger(__name__)

CHECK_EVERY = 60.0
"""Seconds after which the size of the cluster is checked again."""
RETRY_AFTER = 3600.0
"""Seconds after which a compilation that failed is tried again."""
COMPILE_DEADLINE = 900.0
"""Seconds. It has a low priority, and on a busy machine it takes many times its 20 s of CPU."""

_YOUNG_OBJECTS = 50_000
"""A plan of a large cluster makes some hundred thousand objects, most of which are freed by reference count."""

_MALLOC_OPTIONS = {-8: 1, -3: 2**18, -1: 2**19}
"""M_ARENA_MAX, M_MMAP_THRESHOLD and M_TRIM_THRESHOLD of glibc."""

_PODS_PER_UNHAPPY_ONE = 20
"""Where only unhappy pods are matched, room is made for one of so many pods to be unhappy at once."""


async def compile_elsewhere() -> bool:
    """In a process of its own, for the cache on disk. True when nothing is left to compile."""
    pipe, nothing = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(*COMMAND, stdin=nothing, stdout=nothing, stderr=pipe)
    try:
        async with asyncio.timeout(COMPILE_DEADLINE):
            _, said = await process.communicate()
    except TimeoutError:
        log.warning("the kernels are not compiled in time; plans are made without them", seconds=COMPILE_DEADLINE)
        return False
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        text = said.decode(errors="replace").strip()[-500:]
        log.warning("the kernels could not be compiled; plans are made without them", error=text)
    return not process.returncode


class KernelCompilation:
    """Loads the matching kernels once the cluster is large enough to need them. Until they are compiled, plans do
    without: no decision waits for the compiler, and where few pods are matched at once, nobody pays for the memory."""

    def __init__(
        self,
        state: State,
        clock: Clock,
        settings: Callable[[], Settings] = Settings,
        loaded: Callable[[], None] = lambda: None,
        compiler: Callable[[], Awaitable[bool]] = compile_elsewhere,
    ) -> None:
        """`loaded` is called when they are loaded."""
        self._state = state
        self._clock = clock
        self._settings = settings
        self._loaded = loaded
        self._compiler = compiler

    async def run(self) -> None:
        """Until they are loaded."""
        with only_on_request():
            await self._state.until_synced()
            while not self._large():
                await self._clock.sleep(CHECK_EVERY)
            while not await self._compiler():
                await self._clock.sleep(RETRY_AFTER)
            seconds = await asyncio.to_thread(warm_up)
        if seconds is None:
            log.info("numba is not installed: plans of a cluster of this size take longer", extra="fast")
        else:
            log.info("matching kernels are loaded", seconds=round(seconds, 2))
            self._loaded()

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


def limit_heap() -> None:
    """Makes glibc give back what is free. Else each thread keeps a heap of its own, as large as its largest plan. To be
    called before there are threads; with another C library there is nothing to do."""
    if platform.libc_ver()[0] != "glibc":
        return
    library = ctypes.CDLL(None)
    for option, value in _MALLOC_OPTIONS.items():
        library.mallopt(option, value)
