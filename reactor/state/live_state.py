"""The live state: written by the watchers and the metrics collector, read by everything else through `freeze`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from typing import cast

import msgspec

from predictors.peaks import SigmaOrPercentile
from reactor.clock import Clock
from reactor.cluster.hints import HOSTNAME_LABEL
from reactor.cluster.kinds import Kind
from reactor.cluster.mirror import ClusterMirror, Listener
from reactor.cluster.records import ConfigMap, Event, Namespace, Node, Pod, Record, Workload
from reactor.cluster.view import ClusterView
from reactor.cluster.writes import Binding
from reactor.forecasts.forecasts import Forecasts
from reactor.forecasts.load_ahead import LoadAhead
from reactor.forecasts.pod_forecasts import ForecastNeeds
from reactor.history.past_needs import HistoryNeeds, PastNeeds
from reactor.settings.model import DecisionTrigger, Settings
from reactor.signals.latency import LatencySignals
from reactor.signals.measurements import ProbeCounter
from reactor.signals.probes import ProbeHistory
from reactor.signals.sources import Reading
from reactor.signals.startup_times import StartupTimes
from reactor.signals.usage import UsageHistory
from reactor.signals.usage_changes import UsageChanges
from reactor.state.calibration import Calibration
from reactor.state.foresight import Foresight, NodeOutlook
from reactor.state.happiness import PodHappiness, half_life
from reactor.state.load_changes import LoadChange
from reactor.state.moves import ActiveMoves
from reactor.state.snapshot import Needs, Snapshot
from reactor.state.steering import SteeringStatus
from reactor.work_queue import WorkQueue
from storage.rows import HappinessRow

ASSUMED_FOR = 30.0
"""Seconds for which a binding of ours is assumed to have happened before the watch shows it."""
ASSUMED_WITHOUT_ANSWER = 5.0
"""The same for a binding whose answer was lost. It may be tried again: the API server binds a pod once only."""

RELIEF = 0.05
"""Of its node's capacity a pod must have used or requested for its end to count as a relief of the node."""

NEGLIGIBLE_FAILURES = 0.01
"""Pods with fewer decayed failures are happy."""


@dataclass(frozen=True, slots=True)
class _AssumedBinding:
    node: str
    until: float

    def applies_to(self, pod: Pod | None, now: float) -> bool:
        """Not when the watch shows a node, the pod is gone, or the time is up."""
        return pod is not None and pod.node is None and now < self.until


class State:
    def __init__(
        self,
        kinds: Iterable[Kind],
        clock: Clock,
        work_queue: WorkQueue,
        settings: Callable[[], Settings],
        moves_under_way: Callable[[], bool] = lambda: False,
        config_map_changed: Callable[[ConfigMap | None], None] = lambda _config_map: None,
        steering: Callable[[], SteeringStatus] = SteeringStatus,
        pod_waits: Callable[[str], None] = lambda _uid: None,
    ) -> None:
        """`pod_waits` gets the UID of a pod that waits for our binder, whenever it changes."""
        self._steering = steering
        self._pod_waits = pod_waits
        self._moves_under_way = moves_under_way
        self._config_map_changed = config_map_changed
        self._clock = clock
        self._work_queue = work_queue
        self._settings = settings
        self.mirror = ClusterMirror(kinds, self._changed, self._synced)
        self.probes = ProbeHistory(half_life(settings().happiness))
        metrics = settings().metrics
        self.usage = UsageHistory(metrics.freshness, metrics.peak_window, SigmaOrPercentile())
        self.startup_times = StartupTimes()
        self.usage_changes = UsageChanges()
        self.past_needs = PastNeeds()
        """Replaced every hour by `UsageRecording`."""
        self.forecasts = Forecasts()
        """Replaced every 5 minutes by `ForecastUpdates`."""
        self.load_ahead = LoadAhead()
        """Of autoscaled workloads; `LoadSampling` adds to it after each round of measurements."""
        self.foresight = Foresight()
        self._outlooks: dict[str, NodeOutlook] = {}
        self.calibration = Calibration()
        self.sources: dict[str, Reading] = {}
        """By axis: what users' own metrics said last."""
        self.latency = LatencySignals(settings, clock, self.mirror.pod)
        self._failing: set[str] = set()
        self._assumed: dict[str, _AssumedBinding] = {}
        self._ready = False
        self.listeners: list[Listener] = []
        """Called after each change of the mirror."""
        self._pending: set[str] = set()
        self.room_changes = 0
        """Grows when a pod that fits nowhere may fit now: with every change of a node and every pod that ends."""
        self.events_authentic = False
        """See `Snapshot`. Set by `EventPolicyCheck`."""
        self.version = 0
        """Grows with every change; the dashboard waits for it."""

    @property
    def synced(self) -> bool:
        """Every watched kind was listed once, and the events in the lists are counted."""
        return self._ready

    @property
    def failing(self) -> Collection[str]:
        """UIDs of the pods with failed probes that are not forgotten yet."""
        return self._failing

    @property
    def pending(self) -> bool:
        """Whether any pod has no node yet."""
        return bool(self._pending)

    def pods_waiting_for(self, scheduler: str) -> list[str]:
        """UIDs of the pods that this scheduler can bind now."""
        pods = [pod for uid in self._pending if (pod := self.mirror.pod(uid)) is not None]
        return [
            pod.uid
            for pod in pods
            if pod.scheduler_name == scheduler and not pod.gates and not pod.finished and pod.deleting is None
        ]

    async def until_synced(self) -> None:
        await self.mirror.until_synced()

    def restore(self, rows: Iterable[HappinessRow]) -> None:
        rows = list(rows)
        self.probes.restore(rows)
        self._failing.update(row.uid for row in rows if row.failures > NEGLIGIBLE_FAILURES)

    def observe_counters(self, counters: Iterable[ProbeCounter]) -> None:
        """Probe counters from Prometheus."""
        for uid in self.probes.observe_counters(counters, self._clock.now()):
            self._failed(uid)

    async def yield_to_cycle(self) -> None:
        """For bulk work between two batches: a signal does not wait for thousands of samples."""
        await self._work_queue.yield_to_cycle()

    def usage_changed(self) -> None:
        """New measurements are in: pods that wait for fresh ones are evaluated again."""
        self.version += 1
        if self._failing:
            self._work_queue.add("metrics")

    def assume_bound(self, pod: Pod, node: str) -> None:
        """From the decision on, so that neither the pod nor the room is planned twice. Until the watch shows the
        binding, or the API server's answer was passed to `confirm_binding` or `release_binding`."""
        self._assumed[pod.uid] = _AssumedBinding(node, float("inf"))

    def confirm_binding(self, pod: Pod, answer: Binding) -> None:
        assumed = self._assumed.get(pod.uid)
        if assumed is not None:
            seconds = ASSUMED_FOR if answer is Binding.BOUND else ASSUMED_WITHOUT_ANSWER
            self._assumed[pod.uid] = replace(assumed, until=self._clock.now() + seconds)

    def release_binding(self, pod: Pod) -> None:
        self._assumed.pop(pod.uid, None)

    def hostname_of(self, node: str) -> str | None:
        """The value of its label `kubernetes.io/hostname`, which may differ from its name."""
        found = cast("Node | None", self.mirror.records(Kind.NODES).get(node))
        return None if found is None else found.labels.get(HOSTNAME_LABEL)

    def start_cycle(self) -> ClusterView:
        """Everything that changes with time alone: the counts decay, happy pods and old assumptions are dropped.

        Returns the cluster as it is now, for `freeze`.
        """
        now = self._clock.now()
        self.probes.half_life = half_life(self._settings().happiness)
        self.probes.advance(self._failing, now)
        if self._ready:
            self._failing = {uid for uid in self._failing if self._has_failures(uid, now)}
        self._assumed = {
            uid: assumed for uid, assumed in self._assumed.items() if assumed.applies_to(self.mirror.pod(uid), now)
        }
        self.latency.start_cycle(now)
        cluster = self.cluster()
        predictive = self._settings().decision.trigger is DecisionTrigger.PREDICTIVE
        self._outlooks = self.foresight.look(cluster, self.usage, self.forecasts) if predictive else {}
        return cluster

    def freeze(self, moves: ActiveMoves, cluster: ClusterView | None = None, needs: Needs = Needs.METRICS) -> Snapshot:
        """Changes nothing, so it may be called at any time. `cluster` is what `start_cycle` returned, by default the
        cluster as it is now."""
        cluster = self.cluster() if cluster is None else cluster
        now = cluster.at
        pods = [pod for uid in self._failing if (pod := cluster.pods.get(uid)) is not None]
        happiness = {pod.uid: self._happiness(pod, now) for pod in pods}
        failing = {uid: each for uid, each in happiness.items() if each.counts.failures >= NEGLIGIBLE_FAILURES}
        unhappy = [pod for pod in pods if happiness[pod.uid].unhappy]
        nodes = {pod.node for pod in unhappy if pod.node is not None} & cluster.nodes.keys()
        return Snapshot(
            now,
            cluster,
            self.usage.freeze(now),
            failing,
            moves,
            needs,
            self._steering(),
            self.events_authentic,
            self.calibration.curve,
            self.startup_times.freeze(),
            recent_probes={pod.uid: self.probes.recent(pod.uid, now) for pod in unhappy},
            history=HistoryNeeds(self.past_needs, self._settings().history),
            forecasts=ForecastNeeds(self.forecasts, self._settings().forecasting),
            latency=self.latency.freeze(cluster.pods.values(), now),
            outlooks=self._outlooks,
            foresight_trust=self.foresight.trust,
            load_changes={name: LoadChange.of(cluster.nodes[name], self.usage) for name in nodes},
            sources={
                name: reading.values
                for name, reading in self.sources.items()
                if now - reading.at <= self._settings().metrics.freshness
            },
        )

    def cluster(self) -> ClusterView:
        """As the watches show it, with the bindings that they do not show yet."""
        now = self._clock.now()
        cluster = self.mirror.freeze(now)
        bound = {
            uid: msgspec.structs.replace(cluster.pods[uid], node=assumed.node)
            for uid, assumed in self._assumed.items()
            if assumed.applies_to(cluster.pods.get(uid), now)
        }
        if not bound:
            return cluster
        assumed = replace(cluster, pods={**cluster.pods, **bound})
        assumed.take_indexes(cluster, bound)
        return assumed

    def _has_failures(self, uid: str, now: float) -> bool:
        known = self.mirror.pod(uid) is not None
        return known and self.probes.counts(uid, now).failures >= NEGLIGIBLE_FAILURES

    def _synced(self) -> None:
        """The listed events are counted only now, when all the pods that they are about are known."""
        now = self._clock.now()
        for event in self.mirror.records(Kind.EVENTS).values():
            if self.probes.observe_event(cast(Event, event), now, listed=True):
                self._failing.add(cast(Event, event).involved_uid)
        self.probes.drop_unused_rows()
        self._ready = True
        self._work_queue.add("synced")

    def _changed(self, kind: Kind, old: Record | None, new: Record | None) -> None:
        self.version += 1
        self._note_usage_change(kind, old, new)
        if kind is Kind.PODS:
            self._pod_changed(cast("Pod | None", old), cast("Pod | None", new))
        elif kind is Kind.EVENTS and self._ready and new is not None:
            event = cast(Event, new)
            if self.probes.observe_event(event, self._clock.now(), listed=self.mirror.listing):
                self._failed(event.involved_uid)
        elif kind in (Kind.PDBS, Kind.DEPLOYMENTS, Kind.REPLICA_SETS) and self._moves_under_way():
            self._work_queue.add("moves")
        elif kind is Kind.NODES:
            self._node_changed(cast("Node | None", old), cast("Node | None", new))
        elif kind is Kind.CONFIG_MAPS:
            self._config_map_changed(cast("ConfigMap | None", new))
        for listener in self.listeners:
            listener(kind, old, new)

    def _note_usage_change(self, kind: Kind, old: Record | None, new: Record | None) -> None:
        """What the first list has is no change."""
        if self._ready and kind in (Kind.DEPLOYMENTS, Kind.STATEFUL_SETS):
            workloads = cast("Workload | None", old), cast("Workload | None", new)
            self.usage_changes.observe_workload(*workloads, self._clock.now())
        elif self._ready and kind is Kind.NODES:
            self.usage_changes.observe_node(cast("Node | None", old), cast("Node | None", new), self._clock.now())

    def _node_changed(self, old: Node | None, new: Node | None) -> None:
        heartbeat = old is not None and new is not None and _same_but_version(old, new)
        self.room_changes += not heartbeat
        if new is not None:
            self.usage.observe_node(new.name, new.addresses)
        elif old is not None:
            self.usage.forget_node(old.name)

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        self._note_relief(old, new)
        self.startup_times.observe_pod(old, new, self._clock.now())
        if new is not None:
            self.probes.observe_pod(new, self._clock.now())
            self.usage.observe_pod(new)
        elif old is not None:
            self.probes.forget(old.uid)
            self.usage.forget_pod(old, self._clock.now())
            self.latency.forget(old.uid)
        self._note_room(old, new)
        pending = (old if old is not None and old.node is None else new) or old
        if pending is not None and pending.node is None and pending.scheduler_name == self._settings().scheduler_name:
            self._work_queue.add(pending.uid)
            self._pod_waits(pending.uid)
        elif self._moves_under_way():
            self._work_queue.add("moves")

    def _note_relief(self, old: Pod | None, new: Pod | None) -> None:
        """A pod of some size left its node: what failed there before says little about the node now."""
        if old is None or old.node is None or old.finished or not (new is None or new.finished):
            return
        node, now = cast("Node | None", self.mirror.records(Kind.NODES).get(old.node)), self._clock.now()
        if node is None or not self._failing:
            return
        usage = self.usage.newest(old.uid, now)
        used = {"cpu": usage.cpu.fresh or 0.0, "memory": usage.memory.fresh or 0.0}
        if any(
            max(amount, old.requests.get(axis, 0.0)) >= RELIEF * node.allocatable.get(axis, 0.0)
            for axis, amount in used.items()
        ):
            for uid in self._failing:
                failing = self.mirror.pod(uid)
                if failing is not None and failing.node == node.name:
                    self.probes.relieve(uid, now)

    def _note_room(self, old: Pod | None, new: Pod | None) -> None:
        if new is not None and new.node is None:
            self._pending.add(new.uid)
        elif old is not None:
            self._pending.discard(old.uid)
        if old is not None and old.node is not None and (new is None or new.finished):
            self.room_changes += 1

    def _failed(self, uid: str) -> None:
        """Wakes the controller only for a pod below its threshold: most failures need no cycle."""
        self._failing.add(uid)
        pod = self.mirror.pod(uid)
        if pod is not None and self._happiness(pod, self._clock.now()).unhappy:
            self._work_queue.add(uid)

    def _happiness(self, pod: Pod, now: float) -> PodHappiness:
        namespace = cast("Namespace | None", self.mirror.records(Kind.NAMESPACES).get(pod.namespace))
        return PodHappiness.of(pod, namespace, self.probes.counts(pod.uid, now), self._settings().happiness)


def _same_but_version(old: Node, new: Node) -> bool:
    return msgspec.structs.replace(old, resource_version=new.resource_version) == new
