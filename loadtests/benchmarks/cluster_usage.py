"""Usage of pods that only claim to run: every other node is crowded by what its pods use."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from loadtests.embedded.metrics_api import NodeUsage, PodUsage
from loadtests.kwok import Fleet, PodObserver
from reactor.clock import Clock
from reactor.cluster.records import Pod

CROWDED, ROOMY = 0.82, 0.30
"""Share of a node's cores that its first pods use; above 0.8 a move can help."""
_BYTES = 2.0**28


class ClaimedUsage:
    """Implements the lab's MetricsProvider from what the referee sees.

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

    def node_usage(self) -> Iterable[NodeUsage]:
        now, used = self._clock.now(), defaultdict[str, float](float)
        for pod in self._running():
            used[pod.node or ""] += self._cores(pod)
        return [NodeUsage(name, used[name], 0.25 * 2**35, now) for name in self._names]

    def pod_usage(self) -> Iterable[PodUsage]:
        now = self._clock.now()
        return [PodUsage(pod.namespace, pod.name, (("web", self._cores(pod), _BYTES),), now) for pod in self._running()]

    def _running(self) -> list[Pod]:
        return [pod for pod in self._observer.pods() if pod.node is not None and pod.ready]

    def _cores(self, pod: Pod) -> float:
        roomy = self._first.get(pod.uid, self._names[0]) not in self._hungry
        return self._share * (ROOMY if roomy else CROWDED)
