"""The mirror of the cluster: the newest record of every watched object. Only watches write to it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping
from types import MappingProxyType
from typing import TypeVar, cast

import msgspec

from matching.problem import Rules
from reactor.cluster.decoding.decoder import key_of
from reactor.cluster.decoding.events import concerns_probes
from reactor.cluster.hints import MOVE_LABEL
from reactor.cluster.kinds import WORKLOAD_KINDS, Kind
from reactor.cluster.pod_constraints import rules_without_hint
from reactor.cluster.records import (
    CsiNode,
    Event,
    HorizontalPodAutoscaler,
    Namespace,
    Node,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    PodDisruptionBudget,
    Record,
    ResourceQuota,
    Service,
    VolumeAttachment,
    Workload,
)
from reactor.cluster.view import ClusterView

Listener = Callable[[Kind, Record | None, Record | None], None]
"""(kind, old, new): old is None for a new record, new for a removed one."""

EVENTS_KEPT = 50_000
"""More than the kubelets of a cluster report in an hour; beyond it the oldest are dropped. They take less than 40 MiB,
or 130 if somebody writes Events whose fields are as long as they are kept."""

_RULES_KEPT = 4096

R = TypeVar("R")


class ClusterMirror:
    """Implements `watch.RecordSink`.

    Only Events that `concerns_probes` are kept, so that a repeated one can be recognised.
    """

    def __init__(self, kinds: Iterable[Kind], listener: Listener, synced: Callable[[], None] = lambda: None) -> None:
        """`synced` is called once, when every kind was listed."""
        self._records: dict[Kind, dict[str, Record]] = {kind: {} for kind in Kind}
        self._pods_by_name: dict[tuple[str, str], Pod] = {}
        self._stamped: set[str] = set()
        self._rules: dict[tuple[Rules, Rules], Rules] = {}
        self._missing = set(kinds)
        self._unread: set[Kind] = set()
        self._complete = asyncio.Event()
        if not self._missing:
            self._complete.set()
        self._listener = listener
        self._on_synced = synced
        self._listing = False

    @property
    def listing(self) -> bool:
        """Whether the listener is called for a list: its new records may be old."""
        return self._listing

    async def until_synced(self) -> None:
        """Until every watched kind was listed once. Nothing is decided before."""
        await self._complete.wait()

    @property
    def missing(self) -> frozenset[Kind]:
        """The kinds that were not listed yet."""
        return frozenset(self._missing)

    def replaced(self, kind: Kind, records: Collection[Record], unreadable: Collection[str] = ()) -> None:
        """The result of a list of one kind. Known records of `unreadable` keys stay as they were."""
        gone = self._records[kind].keys() - unreadable - {key_of(kind, record) for record in records}
        self._listing = True
        for record in records:
            self.upsert(kind, record)
        for key in gone:
            self.remove(kind, key)
        self._listing = False
        self._unread.discard(kind)
        self._found(kind)

    def unavailable(self, kind: Kind) -> None:
        """This optional kind cannot be read here, so nothing waits for it. What was known of it stays."""
        self._unread.add(kind)
        self._found(kind)

    def _found(self, kind: Kind) -> None:
        self._missing.discard(kind)
        if not self._missing and not self._complete.is_set():
            self._complete.set()
            self._on_synced()

    def upsert(self, kind: Kind, record: Record) -> None:
        known = self._records[kind]
        key = key_of(kind, record)
        old = known.get(key)
        if old is not None and old.resource_version == record.resource_version != "":
            return
        if kind is Kind.EVENTS and not self._is_kept(cast(Event, record)):
            return
        known[key] = record
        if kind is Kind.PODS:
            pod = cast(Pod, record)
            self._pods_by_name[pod.namespace, pod.name] = pod
            if MOVE_LABEL in pod.labels:
                self._stamped.add(pod.uid)
        self._listener(kind, old, record)

    def remove(self, kind: Kind, key: str) -> None:
        old = self._records[kind].pop(key, None)
        if old is None:
            return
        if kind is Kind.PODS:
            pod = cast(Pod, old)
            name = (pod.namespace, pod.name)
            self._stamped.discard(pod.uid)
            if self._pods_by_name.get(name) is pod:
                del self._pods_by_name[name]
        self._listener(kind, old, None)

    def _is_kept(self, event: Event) -> bool:
        if not concerns_probes(event):
            return False
        events = self._records[Kind.EVENTS]
        if len(events) >= EVENTS_KEPT and event.uid not in events:
            del events[next(iter(events))]
        return True

    def records(self, kind: Kind) -> Mapping[str, Record]:
        """A live, read-only mapping of one kind, by key."""
        return MappingProxyType(self._records[kind])

    def pod(self, uid: str) -> Pod | None:
        return cast("Pod | None", self._records[Kind.PODS].get(uid))

    def pod_named(self, namespace: str, name: str) -> Pod | None:
        return self._pods_by_name.get((namespace, name))

    def freeze(self, now: float) -> ClusterView:
        workloads: dict[str, Workload] = {}
        for kind in WORKLOAD_KINDS:
            workloads.update(self._copy(kind, Workload))
        return ClusterView(
            at=now,
            nodes=self._copy(Kind.NODES, Node),
            pods=self._pods(workloads),
            workloads=workloads,
            pdbs=tuple(self._copy(Kind.PDBS, PodDisruptionBudget).values()),
            namespaces=self._copy(Kind.NAMESPACES, Namespace),
            pvcs=tuple(self._copy(Kind.PVCS, PersistentVolumeClaim).values()),
            pvs=self._copy(Kind.PVS, PersistentVolume),
            csi_nodes=self._copy(Kind.CSI_NODES, CsiNode),
            volume_attachments=tuple(self._copy(Kind.VOLUME_ATTACHMENTS, VolumeAttachment).values()),
            hpas=tuple(self._copy(Kind.HPAS, HorizontalPodAutoscaler).values()),
            services=tuple(self._copy(Kind.SERVICES, Service).values()),
            quotas=tuple(self._copy(Kind.RESOURCE_QUOTAS, ResourceQuota).values()),
            unread=frozenset(self._unread),
        )

    def _pods(self, workloads: Mapping[str, Workload]) -> dict[str, Pod]:
        """A pod that a hint applied to has the rules of its owner's template: it must not be tied to where it is."""
        pods = self._copy(Kind.PODS, Pod)
        for uid in self._stamped:
            pod = pods[uid]
            owner = workloads.get(pod.owner.uid) if pod.owner is not None else None
            if owner is not None and owner.rules is not None:
                pods[uid] = msgspec.structs.replace(pod, rules=self._without_hint(pod.rules, owner.rules))
        return pods

    def _without_hint(self, rules: Rules, template: Rules) -> Rules:
        """Equal rules are one value: planning looks them up by identity first."""
        if len(self._rules) >= _RULES_KEPT:
            self._rules.clear()
        key = (rules, template)
        if key not in self._rules:
            self._rules[key] = rules_without_hint(rules, template)
        return self._rules[key]

    def _copy(self, kind: Kind, _type: type[R]) -> dict[str, R]:
        """The decoder guarantees that each kind has records of one type."""
        return cast("dict[str, R]", self._records[kind].copy())
