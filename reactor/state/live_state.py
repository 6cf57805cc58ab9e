"""The live state: written by the watchers and the metric sources, read by everybody else through `freeze`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import cast

import msgspec

from predictors.peaks import SigmaOrPercentile
from reactor.clock import Clock
from reactor.cluster.kinds import Kind
from reactor.cluster.mirror import ClusterMirror
from reactor.cluster.records import ConfigMap, Event, Namespace, Node, Pod, Record
from reactor.cluster.view import ClusterView
from reactor.settings.model import Settings
from reactor.signals.measurements import ProbeCounter
from reactor.signals.probes import ProbeHistory
from reactor.signals.usage import UsageHistory
from reactor.state.moves import Ongoing
from reactor.state.snapshot import PodHappiness, Snapshot
from reactor.work_queue import WorkQueue
from storage.rows import HappinessRow

ASSUMED_FOR = 30.0
"""How long a binding of ours is believed before the watch has shown it."""

FORGIVEN = 0.01
"""Decayed failures below this no longer put a pod under observation."""


@dataclass(frozen=True, slots=True)
class _Assumed:
    node: str
    until: float


@dataclass(frozen=True, slots=True)
class Hooks:
    """What the state asks of, and tells, its surroundings."""

    moves_under_way: Callable[[], bool]
    config_map_changed: Callable[[ConfigMap | None], None]


class State:
    def __init__(
        self,
        kinds: Iterable[Kind],
        clock: Clock,
        work_queue: WorkQueue,
        settings: Callable[[], Settings],
        hooks: Hooks,
    ) -> None:
        self._moves_under_way = hooks.moves_under_way
        self._config_map_changed = hooks.config_map_changed
        self._clock = clock
        self._work_queue = work_queue
        self._settings = settings
        self.mirror = ClusterMirror(kinds, self._changed)
        self.probes = ProbeHistory(settings().happiness.half_life)
        metrics = settings().metrics
        self.usage = UsageHistory(metrics.freshness, metrics.peak_window, SigmaOrPercentile())
        self._failing: set[str] = set()
        self._assumed: dict[str, _Assumed] = {}
        self._ready = False
        self.version = 0
        """Grows with every change; the dashboard waits on it."""

    @property
    def synced(self) -> bool:
        """Every watched kind was listed once, and the events found by then are on the accounts."""
        if not self._ready and self.mirror.synced:
            self._read_history()
        return self._ready

    async def until_synced(self) -> None:
        await self.mirror.until_synced()
        if not self._ready:
            self._read_history()

    def restore(self, rows: Iterable[HappinessRow]) -> None:
        rows = list(rows)
        self.probes.restore(rows)
        self._failing.update(row.uid for row in rows if row.failures > FORGIVEN)

    def count(self, counters: Iterable[ProbeCounter]) -> None:
        """Probe counters from Prometheus."""
        for uid in self.probes.observe_counters(counters, self._clock.now()):
            self._failed(uid)

    async def yield_to_cycle(self) -> None:
        """For bulk work between two pieces: a pod that wants to be looked at does not wait for thousands of samples."""
        await self._work_queue.yield_to_cycle()

    def measured(self) -> None:
        """New measurements are in: whoever waits for fresh ones is looked at again."""
        self.version += 1
        if self._failing:
            self._work_queue.add("metrics")

    def assume_bound(self, pod: Pod, node: str) -> None:
        """Until the watch confirms it, so that nobody plans the pod twice."""
        self._assumed[pod.uid] = _Assumed(node, self._clock.now() + ASSUMED_FOR)

    def freeze(self, ongoing: Ongoing) -> Snapshot:
        now = self._clock.now()
        settings = self._settings()
        self.probes.half_life = settings.happiness.half_life
        cluster = self._with_assumed(self.mirror.freeze(now), now)
        return Snapshot(now, cluster, self.usage.freeze(now), self._moods(cluster, now), ongoing)

    def _moods(self, cluster: ClusterView, now: float) -> dict[str, PodHappiness]:
        moods: dict[str, PodHappiness] = {}
        for uid in list(self._failing):
            pod = cluster.pods.get(uid)
            mood = self._mood(pod, now) if pod is not None else None
            if mood is not None and mood.counts.failures >= FORGIVEN:
                moods[uid] = mood
            elif self._ready:
                self._failing.discard(uid)
        return moods

    def _with_assumed(self, cluster: ClusterView, now: float) -> ClusterView:
        if not self._assumed:
            return cluster
        pods = cast(dict[str, Pod], cluster.pods)
        for uid, assumed in list(self._assumed.items()):
            pod = pods.get(uid)
            if pod is None or pod.node is not None or now >= assumed.until:
                del self._assumed[uid]
            else:
                pods[uid] = msgspec.structs.replace(pod, node=assumed.node)
        return cluster

    def _read_history(self) -> None:
        """Only now are all pods known that the listed events speak of."""
        now = self._clock.now()
        for event in self.mirror.records(Kind.EVENTS).values():
            if self.probes.observe_event(cast(Event, event), now, listed=True):
                self._failing.add(cast(Event, event).involved_uid)
        self.probes.forget_unclaimed()
        self._ready = True
        self._work_queue.add("synced")

    def _changed(self, kind: Kind, old: Record | None, new: Record | None) -> None:
        self.version += 1
        if kind is Kind.PODS:
            self._pod_changed(cast("Pod | None", old), cast("Pod | None", new))
        elif kind is Kind.EVENTS and self._ready and new is not None:
            event = cast(Event, new)
            if self.probes.observe_event(event, self._clock.now(), listed=self.mirror.listing):
                self._failed(event.involved_uid)
        elif kind is Kind.PDBS and self._moves_under_way():
            self._work_queue.add("moves")
        elif kind is Kind.NODES:
            self._node_changed(cast("Node | None", old), cast("Node | None", new))
        elif kind is Kind.CONFIG_MAPS:
            self._config_map_changed(cast("ConfigMap | None", new))

    def _node_changed(self, old: Node | None, new: Node | None) -> None:
        if new is not None:
            self.usage.observe_node(new.name, new.addresses)
        elif old is not None:
            self.usage.forget_node(old.name)

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        if new is not None:
            self.probes.observe_pod(new, self._clock.now())
            self.usage.observe_pod(new)
        elif old is not None:
            self.probes.forget(old.uid)
            self.usage.forget_pod(old)
        waits_or_waited = (old if old is not None and old.node is None else new) or old
        if (
            waits_or_waited is not None
            and waits_or_waited.node is None
            and waits_or_waited.scheduler_name == self._settings().scheduler_name
        ):
            self._work_queue.add(waits_or_waited.uid)
        elif self._moves_under_way():
            self._work_queue.add("moves")

    def _failed(self, uid: str) -> None:
        """Wake the controller only for a pod that is below its threshold: most failures need no cycle."""
        self._failing.add(uid)
        pod = self.mirror.pod(uid)
        if pod is not None and self._mood(pod, self._clock.now()).unhappy:
            self._work_queue.add(uid)

    def _mood(self, pod: Pod, now: float) -> PodHappiness:
        namespace = cast("Namespace | None", self.mirror.records(Kind.NAMESPACES).get(pod.namespace))
        return PodHappiness.of(pod, namespace, self.probes.counts(pod.uid, now), self._settings().happiness)
