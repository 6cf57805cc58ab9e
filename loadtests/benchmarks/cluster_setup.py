"""The cluster of the benches on a real control plane: the plane, KWOK's nodes, a fleet of pods, and an observer."""

from __future__ import annotations

import asyncio
import sys
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Collection, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from loadtests.benchmarks.process import process_use
from loadtests.controlplane import Component, ControlPlane, ControlPlaneOptions, control_plane, prepare_journal
from loadtests.embedded.metrics_api import NodeMetrics, PodMetrics
from loadtests.kwok import PLANE_FLAGS, Fleet, PodObserver, fill, kwok, observed_pods
from loadtests.tools.processes import Progress
from reactor.clock import Clock
from reactor.cluster.records import Pod

CLIENT_QPS = 500
"""Of the controller manager, the scheduler and the descheduler; the burst is twice that."""

_QUIET = 0.2
"""Cores that the whole control plane uses when nothing happens."""
_QUIET_WINDOW = 5.0
_QUIET_DEADLINE = 600.0


CROWDED, ROOMY = 0.98, 0.30
"""Share of a node's cores that its first pods use. On a crowded node failed probes are put down to the node."""
_BYTES = 2.0**28


@dataclass(frozen=True, slots=True)
class BenchCluster:
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
async def bench_cluster(folder: Path, fleet: Fleet, progress: Progress) -> AsyncIterator[BenchCluster]:
    options = ControlPlaneOptions(folder / "plane", flags=PLANE_FLAGS, client_qps=CLIENT_QPS)
    began = time.monotonic()
    async with AsyncExitStack() as stack:
        plane = await stack.enter_async_context(control_plane(options))
        await _prepare_journal(plane)
        await stack.enter_async_context(kwok(plane))
        observer = await stack.enter_async_context(observed_pods(plane.kubeconfig))
        await fill(plane, fleet, observer, progress)
        cluster = BenchCluster(plane, fleet, observer, folder, time.monotonic() - began)
        await _until_quiet(cluster)
        progress("the control plane has settled")
        yield cluster


async def _prepare_journal(plane: ControlPlane) -> None:
    """Without it Rematch evicts nothing."""
    api = plane.client()
    try:
        await prepare_journal(api)
    finally:
        await api.close()


async def _until_quiet(cluster: BenchCluster) -> None:
    """A restarted controller manager looks at everything once; who measures meanwhile measures that."""
    pids = [cluster.pid(component) for component in Component]
    async with asyncio.timeout(_QUIET_DEADLINE):
        used, before = float("inf"), sum(process_use(pid).cpu_seconds for pid in pids)
        while used > _QUIET * _QUIET_WINDOW:
            await asyncio.sleep(_QUIET_WINDOW)
            now = sum(process_use(pid).cpu_seconds for pid in pids)
            used, before = now - before, now


def timed_progress() -> Progress:
    """Lines on standard error with the seconds since the start."""
    began = time.monotonic()

    def progress(line: str) -> None:
        print(f"[{time.monotonic() - began:6.1f} s] {line}", file=sys.stderr, flush=True)

    return progress


@dataclass(frozen=True, slots=True)
class Spread:
    """`imbalance` is the sum over the nodes of what they hold above the mean, and the pods that no node holds.

    Without the latter, pods that were evicted and have no new node yet would count as balanced.
    """

    imbalance: float
    fullest: int
    emptiest: int


def spread_of(on_node: Mapping[str, int], nodes: Collection[str], pods: int) -> Spread:
    """`pods` is how many there are to be, wherever they are now."""
    held = [on_node.get(node, 0) for node in nodes]
    mean = pods / len(held)
    above = sum(max(0.0, number - mean) for number in held)
    return Spread(above + pods - sum(held), max(held), min(held))


@dataclass(frozen=True, slots=True)
class Moment:
    """Seconds since the start, and the imbalance then."""

    at: float
    imbalance: float


def reached(course: Collection[Moment], imbalance: float) -> float | None:
    """When the imbalance was first as low as that."""
    return next((moment.at for moment in course if moment.imbalance <= imbalance), None)


def thinned(course: Collection[Moment], step: float) -> list[Moment]:
    """The last moment of each step: enough to draw it."""
    last = {int(moment.at / step): moment for moment in course}
    return list(last.values())


class FakeUsage:
    """Implements the lab's MetricsProvider from what the observer sees.

    A pod keeps the appetite of the node that it began on; whoever comes later replaces a hungry one.
    """

    def __init__(self, fleet: Fleet, observer: PodObserver, clock: Clock) -> None:
        self._observer, self._clock = observer, clock
        self._names = fleet.node_names
        self._hungry = frozenset(self._names[::2])
        self._share = fleet.node_cores * fleet.nodes / fleet.pods
        self._first = {pod.uid: pod.node or "" for pod in observer.pods()}

    @property
    def crowded_nodes(self) -> list[str]:
        return [name for name in self._names if name in self._hungry]

    def node_usage(self) -> Iterable[NodeMetrics]:
        now, used = self._clock.now(), defaultdict[str, float](float)
        for pod in self._running():
            used[pod.node or ""] += self._cores(pod)
        return [NodeMetrics(name, used[name], 0.25 * 2**35, now) for name in self._names]

    def pod_usage(self) -> Iterable[PodMetrics]:
        now = self._clock.now()
        return [
            PodMetrics(pod.namespace, pod.name, (("web", self._cores(pod), _BYTES),), now) for pod in self._running()
        ]

    def _running(self) -> list[Pod]:
        return [pod for pod in self._observer.pods() if pod.node is not None and pod.ready]

    def _cores(self, pod: Pod) -> float:
        roomy = self._first.get(pod.uid, self._names[0]) not in self._hungry
        return self._share * (ROOMY if roomy else CROWDED)
