"""The stage of the benches on a real control plane: the plane, KWOK's nodes, a fleet of pods, and a referee."""

from __future__ import annotations

import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from loadtests.controlplane import Component, ControlPlane, ControlPlaneOptions, control_plane
from loadtests.kwok import PLANE_FLAGS, Fleet, PodObserver, fill, kwok, observed_pods

CLIENT_QPS = 500
"""Of the controller manager, the scheduler and the descheduler; the burst is twice that."""

Say = Callable[[str], None]


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
        yield Stage(plane, fleet, observer, folder, time.monotonic() - began)


def progress() -> Say:
    """Lines on standard error with the seconds since the start."""
    began = time.monotonic()

    def say(line: str) -> None:
        print(f"[{time.monotonic() - began:6.1f} s] {line}", file=sys.stderr, flush=True)

    return say
