"""The reactor in simulated time: its own state, decision, planner and executor; only the loop's waiting is ours."""

from __future__ import annotations

from loadtests.experiment.apps import NAMESPACE
from loadtests.experiment.driver import SessionSpec
from loadtests.experiment.simulated.cluster import SimulatedCluster
from loadtests.experiment.simulated.parameters import Parameters
from loadtests.experiment.simulated.pod import SimulatedPod
from loadtests.experiment.simulated.wire import (
    CONTAINER,
    SimulatedConnection,
    event_record,
    node_record,
    owner_record,
    pod_record,
)
from loadtests.experiment.tally import Tally
from reactor.cluster.kinds import CLUSTER_KINDS, Kind
from reactor.cluster.records import NodeUsageSample, PodUsageSample
from reactor.cluster.writes import ClusterWriter
from reactor.cycle import Stages, turn
from reactor.decision.decide import Trigger
from reactor.execution.executor import Executor
from reactor.record.history import History
from reactor.record.metrics import Instruments
from reactor.record.notes import Notes
from reactor.record.recorder import Recorder
from reactor.settings.model import Settings
from reactor.settings.planner import make_planner
from reactor.signals.measurements import MetricsSource, ProbeCounter
from reactor.state.live_state import Hooks, State
from reactor.work_queue import WorkQueue
from storage.store import Store

_SHORTEST_PAUSE = 0.05


class SimulatedController:
    """Hears of the cluster as a watcher would; `turn_if_due` is to be called after every event of the agenda."""

    def __init__(self, cluster: SimulatedCluster, spec: SessionSpec, parameters: Parameters, store: Store) -> None:
        assert spec.settings is not None
        self._settings: Settings = spec.settings
        self._cluster, self._agenda = cluster, cluster.agenda
        self._period = float(spec.pace.probe_period)
        self._window = max(parameters.usage_seconds, self._settings.metrics.metrics_api.interval)
        self._work_queue = WorkQueue(self._agenda)
        self._executor = Executor(ClusterWriter(SimulatedConnection(cluster), self._agenda))
        hooks = Hooks(lambda: self._executor.busy, lambda _: None)
        self._state = State(CLUSTER_KINDS, self._agenda, self._work_queue, lambda: self._settings, hooks)
        instruments = Instruments()
        recorder = Recorder(History(store), Notes(None, self._agenda), instruments)
        self._stages = Stages(self._state, make_planner, self._executor, recorder, lambda: self._settings)
        self._version = 0
        self._events: dict[str, int] = {}
        self._used: dict[str, float] = {}
        self._used_by_nodes: dict[str, float] = {}
        self._due = 0.0
        self._woken = False
        self.tally = Tally()
        self._sync(spec)
        self._agenda.after(self._window, self._measure)

    def pod_changed(self, pod: SimulatedPod) -> None:
        self._version += 1
        if pod.deleting and pod.node is None:
            self._state.mirror.remove(Kind.PODS, pod.uid)
            self._used.pop(pod.uid, None)
        else:
            record = pod_record(pod, self._version, self._period, self._agenda.now())
            self._state.mirror.upsert(Kind.PODS, record)
        self._woken = True

    def probe_failed(self, pod: SimulatedPod) -> None:
        self._tell(pod, "Unhealthy")

    def container_killed(self, pod: SimulatedPod) -> None:
        self._tell(pod, "Killing")

    async def turn_if_due(self) -> None:
        """On a signal, at each evaluation interval, and when a wait ends: as the controller's own loop."""
        called = False
        if self._woken:
            self._woken = False
            called = bool(await self._work_queue.next(0.0))
        if not called and self._agenda.time < self._due:
            return
        outcome = await turn(self._stages, Trigger.UNHAPPY)
        waits = [wait.until - self._agenda.now() for wait in outcome.decision.waits if wait.until is not None]
        pause = min([self._settings.triggers.evaluation_interval, *waits])
        self._due = self._agenda.time + max(_SHORTEST_PAUSE, pause)
        self._agenda.at(self._due, lambda: None)
        self.tally.count(outcome)

    def _sync(self, spec: SessionSpec) -> None:
        mirror = self._state.mirror
        mirror.replaced(Kind.NODES, [node_record(node) for node in self._cluster.nodes])
        mirror.replaced(Kind.REPLICA_SETS, [owner_record(app) for app in spec.apps])
        for pod in list(self._cluster.pods.values()):
            self.pod_changed(pod)
        for kind in CLUSTER_KINDS:
            mirror.replaced(kind, list(mirror.records(kind).values()))
        self._cluster.reporter = self
        assert self._state.synced

    def _tell(self, pod: SimulatedPod, reason: str) -> None:
        count = self._events[f"{pod.uid}.{reason}"] = self._events.get(f"{pod.uid}.{reason}", 0) + 1
        self._state.mirror.upsert(Kind.EVENTS, event_record(pod, reason, count, self._agenda.now()))
        self._woken = True

    def _measure(self) -> None:
        """Usage and probe counters, as Prometheus would have scraped them."""
        self._agenda.after(self._window, self._measure)
        now, pods = self._agenda.now(), [pod for pod in self._cluster.pods.values() if pod.started is not None]
        memory = self._cluster.memory_bytes
        usages = [PodUsageSample(NAMESPACE, pod.uid, self._cores(pod), memory, now) for pod in pods]
        self._state.usage.record_pods(usages, MetricsSource.PROMETHEUS, now)
        self._state.usage.record_nodes(self._node_samples(now), MetricsSource.PROMETHEUS, now)
        self._state.count(
            ProbeCounter(NAMESPACE, pod.uid, CONTAINER, float(pod.successes), float(pod.failures), now, pod.uid)
            for pod in pods
        )
        self._state.measured()
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
