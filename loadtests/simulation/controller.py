"""The reactor in simulated time: the controller itself on a virtual clock."""

from __future__ import annotations

from collections.abc import Callable

from loadtests.simulation.cluster import SimulatedCluster
from loadtests.simulation.pod import Parameters, SimulatedPod
from loadtests.simulation.records import (
    CONTAINER,
    SimulatedConnection,
    event_record,
    node_record,
    owner_record,
    pod_record,
)
from reactor.app import Borders, wire
from reactor.cluster.kinds import CLUSTER_KINDS, Kind
from reactor.cluster.records import NodeUsageSample, PodUsageSample
from reactor.cluster.writes import ClusterWriter
from reactor.execution.cycle_outcome import Outcome
from reactor.settings.model import Settings, StrategyName
from reactor.signals.measurements import MetricsSource, ProbeCounter
from storage.store import Store


def _evicting(settings: Settings) -> Settings:
    """The simulated ReplicaSets have one replica and nobody who would scale them."""
    evict = {"strategies": (StrategyName.EVICT,), "evict_single_replicas": True}
    return settings.model_copy(update={"execution": settings.execution.model_copy(update=evict)})


class SimulatedController:
    """Feeds the changes of the cluster to the controller. Call `step_if_due` after each step of the clock."""

    def __init__(self, cluster: SimulatedCluster, settings: Settings, parameters: Parameters, store: Store) -> None:
        self._settings = _evicting(settings)
        self._cluster, self._clock, self._namespace = cluster, cluster.clock, cluster.spec.namespace
        self._window = max(parameters.usage_seconds, self._settings.metrics.metrics_api.interval)
        writer = ClusterWriter(SimulatedConnection(cluster), self._clock)
        self._controller = wire(Borders(self._clock, writer, store, lambda: self._settings))
        self._state, self._loop = self._controller.state, self._controller.loop
        self._version = 0
        self._events: dict[str, int] = {}
        self._used: dict[str, float] = {}
        self._used_by_nodes: dict[str, float] = {}
        self._due = 0.0
        self._woken = False
        self._listener: Callable[[Outcome], None] = lambda _: None
        self._sync()
        self._clock.after(self._window, self._measure)

    def listen(self, listener: Callable[[Outcome], None]) -> None:
        """`listener` gets the outcome of every cycle."""
        self._listener = listener

    def pod_changed(self, pod: SimulatedPod) -> None:
        self._version += 1
        if pod.deleting and pod.node is None:
            self._state.mirror.remove(Kind.PODS, pod.uid)
            self._used.pop(pod.uid, None)
        else:
            record = pod_record(pod, self._version, self._cluster.spec, self._clock.now())
            self._state.mirror.upsert(Kind.PODS, record)
        self._woken = True

    def probe_failed(self, pod: SimulatedPod) -> None:
        self._record_event(pod, "Unhealthy")

    def container_killed(self, pod: SimulatedPod) -> None:
        self._record_event(pod, "Killing")

    async def step_if_due(self) -> None:
        """On a signal, or when the controller's loop is due."""
        keys: dict[str, float] = {}
        if self._woken:
            self._woken = False
            keys = await self._controller.work_queue.next(0.0)
        if not keys and self._clock.time < self._due:
            return
        await self._controller.binding_loop.step()
        outcome = await self._loop.step(keys)
        self._due = self._clock.time + self._loop.due_at - self._clock.now()
        self._clock.at(self._due, lambda: None)
        if outcome is not None:
            self._listener(outcome)

    def _sync(self) -> None:
        mirror = self._state.mirror
        mirror.replaced(Kind.NODES, [node_record(node) for node in self._cluster.spec.nodes])
        mirror.replaced(Kind.REPLICA_SETS, [owner_record(app, self._namespace) for app in self._cluster.spec.apps])
        for pod in list(self._cluster.pods.values()):
            self.pod_changed(pod)
        for kind in CLUSTER_KINDS:
            mirror.replaced(kind, list(mirror.records(kind).values()))
        self._cluster.reporter = self
        assert self._state.synced

    def _record_event(self, pod: SimulatedPod, reason: str) -> None:
        count = self._events[f"{pod.uid}.{reason}"] = self._events.get(f"{pod.uid}.{reason}", 0) + 1
        self._state.mirror.upsert(Kind.EVENTS, event_record(pod, self._namespace, reason, count, self._clock.now()))
        self._woken = True

    def _measure(self) -> None:
        """Usage and probe counters, as Prometheus would have scraped them."""
        self._clock.after(self._window, self._measure)
        now, pods = self._clock.now(), [pod for pod in self._cluster.pods.values() if pod.started is not None]
        memory = self._cluster.memory_bytes
        usages = [PodUsageSample(self._namespace, pod.uid, self._cores(pod), memory, now) for pod in pods]
        self._state.usage.record_pods(usages, MetricsSource.PROMETHEUS, now)
        self._state.usage.record_nodes(self._node_samples(now), MetricsSource.PROMETHEUS, now)
        self._state.observe_counters(
            ProbeCounter(self._namespace, pod.uid, CONTAINER, float(pod.successes), float(pod.failures), now, pod.uid)
            for pod in pods
        )
        self._state.usage_changed()
        self._woken = True

    def _cores(self, pod: SimulatedPod) -> float:
        used = pod.used()
        before, self._used[pod.uid] = self._used.get(pod.uid, 0.0), used
        return (used - before) / self._window

    def _node_samples(self, now: float) -> list[NodeUsageSample]:
        samples = []
        for name, used in self._cluster.used().items():
            before, self._used_by_nodes[name] = self._used_by_nodes.get(name, 0.0), used
            memory = self._cluster.memory_bytes * sum(pod.node == name for pod in self._cluster.pods.values())
            samples.append(NodeUsageSample(name, (used - before) / self._window, memory, now))
        return samples
