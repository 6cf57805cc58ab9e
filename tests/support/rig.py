"""The controller as `reactor.app` wires it, on a virtual clock and a cluster that the test writes."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from reactor.app import Borders, wire
from reactor.cluster.kinds import CLUSTER_KINDS, Kind
from reactor.cluster.records import (
    ConfigMap,
    Event,
    HorizontalPodAutoscaler,
    Namespace,
    Node,
    NodeUsageSample,
    Owner,
    Pod,
    PodDisruptionBudget,
    PodUsageSample,
    Record,
    Workload,
)
from reactor.cycle import run_cycle
from reactor.decision.decide import Trigger
from reactor.execution.cycle_outcome import Outcome, Placement
from reactor.settings.model import Settings
from reactor.signals.measurements import MetricsSource
from reactor.state.snapshot import Snapshot
from tests.support.clock import VirtualClock
from tests.support.cluster import GIB, make_event, make_owner, make_pending, make_settings, make_workload
from tests.support.rows import RowsKept
from tests.support.writer import FakeAnnouncer, FakeWriter

_KINDS: dict[type, Kind] = {
    Pod: Kind.PODS,
    Node: Kind.NODES,
    Event: Kind.EVENTS,
    PodDisruptionBudget: Kind.PDBS,
    Namespace: Kind.NAMESPACES,
    ConfigMap: Kind.CONFIG_MAPS,
    HorizontalPodAutoscaler: Kind.HPAS,
}
_WORKLOADS = {"ReplicaSet": Kind.REPLICA_SETS, "Deployment": Kind.DEPLOYMENTS, "StatefulSet": Kind.STATEFUL_SETS}


class Rig:
    def __init__(self, settings: Settings | None = None, clock: VirtualClock | None = None) -> None:
        self.settings = settings or make_settings(mode="act")
        self.clock = clock or VirtualClock()
        self.writer, self.announcer, self.rows = FakeWriter(), FakeAnnouncer(), RowsKept()
        self.restart()

    def restart(self) -> None:
        """A new controller, as after a restart of the process."""
        borders = Borders(
            self.clock,
            self.writer.writer,
            self.rows.store,
            lambda: self.settings,
            event_writer=self.announcer,
        )
        self.controller = wire(borders)
        self.state, self.memory = self.controller.state, self.controller.memory
        self.executor, self.recorder = self.controller.executor, self.controller.recorder
        self.loop, self.work_queue = self.controller.loop, self.controller.work_queue
        self.instruments, self.events = self.controller.instruments, self.controller.events

    def snapshot(self) -> Snapshot:
        return self.state.freeze(self.executor.active_moves())

    def put(self, *records: Record) -> None:
        """Owners of pods are put along with them, with at least as many replicas as there are pods."""
        for record in records:
            kind = _WORKLOADS[record.kind] if isinstance(record, Workload) else _KINDS[type(record)]
            self.state.mirror.upsert(kind, record)
            if isinstance(record, Pod) and record.owner is not None and record.owner.kind in _WORKLOADS:
                self._put_owner(record.owner, record.namespace)

    def _put_owner(self, owner: Owner, namespace: str) -> None:
        """Nobody scales it down: a pod that is gone is still wanted."""
        kind, pods = _WORKLOADS[owner.kind], self.state.mirror.records(Kind.PODS).values()
        active = sum(isinstance(pod, Pod) and pod.owner == owner and pod.active for pod in pods)
        known = self.state.mirror.records(kind).get(owner.uid)
        wanted = known.replicas if isinstance(known, Workload) else 1
        if wanted < active or known is None:
            self.state.mirror.upsert(kind, make_workload(owner, namespace, replicas=max(1, active)))

    def remove(self, record: Pod | Workload) -> None:
        kind = _WORKLOADS[record.kind] if isinstance(record, Workload) else Kind.PODS
        self.state.mirror.remove(kind, record.uid)

    def sync(self, *records: Record) -> None:
        """What is there already was the first list."""
        self.put(*records)
        mirror = self.state.mirror
        for kind in CLUSTER_KINDS:
            mirror.replaced(kind, list(mirror.records(kind).values()))
        assert self.state.synced

    def measure(self, pods: dict[str, float], nodes: dict[str, float], memory: float = 0.25 * GIB) -> None:
        """Cores by pod name and by node name; memory is the same for all."""
        now, known = self.clock.now(), self.state.mirror.records(Kind.PODS).values()
        by_name = {pod.name: pod for pod in known if isinstance(pod, Pod)}
        samples = [PodUsageSample(by_name[name].namespace, name, cpu, memory, now) for name, cpu in pods.items()]
        self.state.usage.record_pods(samples, MetricsSource.METRICS_API, now)
        shares = [NodeUsageSample(name, cpu, memory, now) for name, cpu in nodes.items()]
        self.state.usage.record_nodes(shares, MetricsSource.METRICS_API, now)

    def fail(self, pod: Pod, count: int = 10) -> None:
        self.put(make_event(pod, count, self.clock.now()))

    def replace_pod(self, pod: Pod, name: str, **fields: Any) -> Pod:
        """The old pod is gone and its owner has made another one, which is pending."""
        self.remove(pod)
        owner = pod.owner or make_owner()
        successor = make_pending(name, owner=owner, labels=pod.labels, created=self.clock.now(), **fields)
        self.put(successor)
        return successor

    def run_pod(self, pod: Pod, node: str, *, ready: bool = True) -> Pod:
        """As its kubelet reports it."""
        running = replace(pod, node=node, phase="Running", ready=ready)
        self.put(running)
        return running

    async def bind(self) -> Placement | None:
        """A pass of the binder."""
        return await self.controller.binding_loop.step()

    async def run_cycle(self, trigger: Trigger = Trigger.UNHAPPY) -> Outcome:
        """A pass of the binder, then a cycle."""
        self.placement = await self.bind()
        return await run_cycle(self.controller.parts, trigger)
