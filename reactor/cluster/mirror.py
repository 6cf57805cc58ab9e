"""The mirror of the cluster: the newest record of every watched object. Only watches write to it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
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
        self._changes: Counter[Kind] = Counter()
        self._made: dict[tuple[Kind, ...], tuple[int, object]] = {}
        """Parts of the last view, each with the number of changes that it has seen."""
        self._last = ClusterView(at=0.0)
        self._changed_pods: set[str] = set()
        """UIDs, since the last view."""

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
        self._changes[kind] += 1
        if kind is Kind.PODS:
            pod = cast(Pod, record)
            self._changed_pods.add(key)
            self._pods_by_name[pod.namespace, pod.name] = pod
            if MOVE_LABEL in pod.labels:
                self._stamped.add(pod.uid)
        self._listener(kind, old, record)

    def remove(self, kind: Kind, key: str) -> None:
        old = self._records[kind].pop(key, None)
        if old is None:
            return
        self._changes[kind] += 1
        if kind is Kind.PODS:
            pod = cast(Pod, old)
            self._changed_pods.add(key)
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
        """What has not changed since the last view is that of the last view, with the indexes on it."""
        workloads = self._kept(WORKLOAD_KINDS, self._workloads)
        view = ClusterView(
            at=now,
            nodes=self._copy(Kind.NODES, Node),
            pods=self._kept((Kind.PODS, *WORKLOAD_KINDS), partial(self._pods, workloads)),
            workloads=workloads,
            pdbs=self._tuple(Kind.PDBS, PodDisruptionBudget),
            namespaces=self._copy(Kind.NAMESPACES, Namespace),
            pvcs=self._tuple(Kind.PVCS, PersistentVolumeClaim),
            pvs=self._copy(Kind.PVS, PersistentVolume),
            csi_nodes=self._copy(Kind.CSI_NODES, CsiNode),
            volume_attachments=self._tuple(Kind.VOLUME_ATTACHMENTS, VolumeAttachment),
            hpas=self._tuple(Kind.HPAS, HorizontalPodAutoscaler),
            services=self._tuple(Kind.SERVICES, Service),
            quotas=self._tuple(Kind.RESOURCE_QUOTAS, ResourceQuota),
            unread=frozenset(self._unread),
        )
        view.take_indexes(self._last, self._changed_pods)
        self._last, self._changed_pods = view, set()
        return view

    def _workloads(self) -> dict[str, Workload]:
        workloads: dict[str, Workload] = {}
        for kind in WORKLOAD_KINDS:
            workloads.update(cast("dict[str, Workload]", self._records[kind]))
        return workloads

    def _pods(self, workloads: Mapping[str, Workload]) -> dict[str, Pod]:
        """A pod that a hint applied to has the rules of its owner's template: it must not be tied to where it is."""
        pods = cast("dict[str, Pod]", self._records[Kind.PODS].copy())
        for uid in self._stamped:
            pod = pods[uid]
            owner = workloads.get(pod.owner.uid) if pod.owner is not None else None
            if owner is not None and owner.rules is not None:
                pods[uid] = msgspec.structs.replace(pod, rules=self._without_hint(pod.rules, owner.rules))
        self._changed_pods |= self._stamped
        return pods

    def _without_hint(self, rules: Rules, template: Rules) -> Rules:
        """Equal rules are one value: planning looks them up by identity first."""
        if len(self._rules) >= _RULES_KEPT:
            self._rules.clear()
        key = (rules, template)
        if key not in self._rules:
            self._rules[key] = rules_without_hint(rules, template)
        return self._rules[key]

    def _copy(self, kind: Kind, _type: type[R]) -> Mapping[str, R]:
        """The decoder guarantees that each kind has records of one type."""
        return self._kept((kind,), lambda: cast("dict[str, R]", self._records[kind].copy()))

    def _tuple(self, kind: Kind, _type: type[R]) -> tuple[R, ...]:
        return self._kept((kind,), lambda: cast("tuple[R, ...]", tuple(self._records[kind].values())))

    def _kept(self, kinds: tuple[Kind, ...], make: Callable[[], R]) -> R:
        """What was made last, until a record of these kinds changes."""
        changes = sum(self._changes[kind] for kind in kinds)
        known = self._made.get(kinds)
        if known is None or known[0] != changes:
            known = self._made[kinds] = (changes, make())
        return cast(R, known[1])
