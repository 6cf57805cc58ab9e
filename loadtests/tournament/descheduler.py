"""descheduler, modelled from its documentation: LowNodeUtilization on usage, and RemovePodsHavingTooManyRestarts.

LowNodeUtilization: nodes below `low` in all of CPU, memory and pods are underutilised, nodes above `high` in any
are overutilised. Without nodes of both kinds nothing happens. From each overutilised node, the most used first, pods
are evicted (all have the same priority here: in the order of their names), until the node is at `high` or the
underutilised nodes have taken what they can up to `high`. RemovePodsHavingTooManyRestarts evicts pods with at least
`restarts` restarts. kube-scheduler places what is evicted.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from loadtests.tournament.cluster import FluidCluster
from loadtests.tournament.queues import Floats
from loadtests.tournament.state import FluidPod

RESTARTS = 100
USAGE_WINDOW = 15.0
"""Seconds over which metrics-server averages."""


@dataclass(frozen=True, slots=True)
class Thresholds:
    low: float
    high: float
    restarts: int = RESTARTS


DOCUMENTED = Thresholds(0.2, 0.5)
"""As in the example of its documentation. On a cluster with a mean load above 50 % no node is underutilised."""
FITTING = Thresholds(0.6, 0.8, 5)
"""As somebody would set it who knows this cluster: nodes below 60 % take pods from nodes above 80 %."""


class Descheduler:
    def __init__(self, cluster: FluidCluster, thresholds: Thresholds, interval: float) -> None:
        self._cluster, self._thresholds, self._interval = cluster, thresholds, interval
        self._due, self._measured_at = interval, 0.0
        self._used: dict[str, float] = {}
        self._cores: dict[str, float] = {}
        self.cpu_seconds = 0.0

    async def act(self) -> None:
        began, now = time.process_time(), self._cluster.clock.time
        if now - self._measured_at >= USAGE_WINDOW:
            self._measure(now)
        if now >= self._due:
            self._due = now + self._interval
            for plugin in (self._having_too_many_restarts, self.low_node_utilization):
                for pod in plugin():
                    self._cluster.evict(pod.uid)
        self.cpu_seconds += time.process_time() - began

    def cores(self, pod: FluidPod) -> float:
        """What it used, as last measured."""
        return self._cores.get(pod.uid, 0.0)

    def _measure(self, now: float) -> None:
        seconds, self._measured_at = now - self._measured_at, now
        slots = self._cluster.slots
        used = {uid: float(slots.used[pod.slot]) for uid, pod in self._cluster.pods.items()}
        self._cores = {uid: max(amount - self._used.get(uid, 0.0), 0.0) / seconds for uid, amount in used.items()}
        self._used = used

    def _having_too_many_restarts(self) -> list[FluidPod]:
        return [pod for pod in self._cluster.running() if pod.restarts >= self._thresholds.restarts]

    def low_node_utilization(self) -> list[FluidPod]:
        """The pods that this plugin evicts now."""
        cluster, limits = self._cluster, self._thresholds
        names = [name for name, node in cluster.nodes.items() if cluster.usable(node)]
        pods = {name: [pod for pod in cluster.running() if pod.node == name] for name in names}
        use = {name: self._use(name, pods[name]) for name in names}
        low = [name for name in names if np.all(use[name] < limits.low)]
        high = sorted((name for name in names if np.any(use[name] > limits.high)), key=lambda name: -use[name].sum())
        room: Floats = sum(((limits.high - use[name]) * self._capacity(name) for name in low), np.zeros(3))
        chosen: list[FluidPod] = []
        for name in high if low else ():
            used = use[name]
            for pod in sorted(pods[name], key=lambda each: each.uid):
                if not np.any(used > limits.high) or np.any(room <= 0):
                    break
                chosen.append(pod)
                used, room = used - self._amount(pod) / self._capacity(name), room - self._amount(pod)
        return chosen

    def _use(self, name: str, pods: list[FluidPod]) -> Floats:
        """Shares of CPU, memory and pods. Pods that it may not evict use the node as well."""
        pinned = [pod for pod in self._cluster.pods.values() if pod.node == name and pod.app.pinned]
        total: Floats = sum((self._amount(pod) for pod in (*pods, *pinned)), np.zeros(3))
        return total / self._capacity(name)

    def _amount(self, pod: FluidPod) -> Floats:
        return np.array([self.cores(pod), self._cluster.memory_of(pod), 1.0])

    def _capacity(self, name: str) -> Floats:
        spec = self._cluster.nodes[name].model.spec
        return np.array([spec.cores, float(spec.memory_bytes), float(spec.max_pods)])
