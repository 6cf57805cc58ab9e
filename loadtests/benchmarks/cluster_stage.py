"""The stage of the benches on a real control plane: the plane, KWOK's nodes, a fleet of pods, and a referee."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from loadtests.benchmarks.process import process_use
from loadtests.controlplane import Component, ControlPlane, ControlPlaneOptions, control_plane
from loadtests.kwok import PLANE_FLAGS, Fleet, PodObserver, fill, kwok, observed_pods
from loadtests.tools.saying import Say

CLIENT_QPS = 500
"""Of the controller manager, the scheduler and the descheduler; the burst is twice that."""

_QUIET = 0.2
"""Cores that the whole control plane uses when nothing happens."""
_QUIET_WINDOW = 5.0
_QUIET_DEADLINE = 600.0


@dataclass(frozen=True, slots=True)
class Stage:
    plane: ControlPlane
    fleet: Fleet
    observer: PodObserver
    folder: Path
    filled_seconds: float

    def pid(self, component: Component) -> int:
        identity = self.plane.processes[component].identity
        assert identity is not None, f"{component} has ended"
        return identity.pid


@asynccontextmanager
async def filled_stage(folder: Path, fleet: Fleet, say: Say) -> AsyncIterator[Stage]:
    options = ControlPlaneOptions(folder / "plane", flags=PLANE_FLAGS, client_qps=CLIENT_QPS)
    began = time.monotonic()
    async with AsyncExitStack() as stack:
        plane = await stack.enter_async_context(control_plane(options))
        await stack.enter_async_context(kwok(plane))
        observer = await stack.enter_async_context(observed_pods(plane.kubeconfig))
        await fill(plane, fleet, observer, say)
        stage = Stage(plane, fleet, observer, folder, time.monotonic() - began)
        await _until_quiet(stage)
        say("the control plane has settled")
        yield stage


async def _until_quiet(stage: Stage) -> None:
    """A restarted controller manager looks at everything once; who measures meanwhile measures that."""
    pids = [stage.pid(component) for component in Component]
    async with asyncio.timeout(_QUIET_DEADLINE):
        used, before = float("inf"), sum(process_use(pid).cpu_seconds for pid in pids)
        while used > _QUIET * _QUIET_WINDOW:
            await asyncio.sleep(_QUIET_WINDOW)
            now = sum(process_use(pid).cpu_seconds for pid in pids)
            used, before = now - before, now


def progress() -> Say:
    """Lines on standard error with the seconds since the start."""
    began = time.monotonic()

    def say(line: str) -> None:
        print(f"[{time.monotonic() - began:6.1f} s] {line}", file=sys.stderr, flush=True)

    return say
