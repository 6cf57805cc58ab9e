"""The kinds that need little of their object: workloads, budgets, namespaces, storage, priorities, settings."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping

import msgspec
from msgspec import Raw, Struct

from matching.feasibility import ZONE_LABELS
from reactor.cluster.decoding.parts import MetaDecoder, WireMeta, decode_strings, uid_of
from reactor.cluster.decoding.selectors import WireNodeSelector, WireSelector, node_terms
from reactor.cluster.decoding.selectors import selector as label_selector
from reactor.cluster.records import (
    ConfigMap,
    LabelSelector,
    Namespace,
    PersistentVolume,
    PersistentVolumeClaim,
    PodDisruptionBudget,
    PriorityClass,
    Workload,
)


class _WorkloadSpec(Struct, gc=False):
    replicas: int | None = None
    parallelism: int | None = None


class _WorkloadStatus(Struct, rename="camel", gc=False):
    ready_replicas: int | None = None
    number_ready: int | None = None
    desired_number_scheduled: int | None = None
    ready: int | None = None


class _Workload(Struct, gc=False):
    metadata: WireMeta
    spec: _WorkloadSpec | None = None
    status: _WorkloadStatus | None = None


_WORKLOAD = msgspec.json.Decoder(_Workload)


def workload_decoder(kind: str, metas: MetaDecoder) -> Callable[[bytes | Raw], Workload]:
    def decode(text: bytes | Raw) -> Workload:
        wire = _WORKLOAD.decode(text)
        meta, spec, status = wire.metadata, wire.spec or _WorkloadSpec(), wire.status or _WorkloadStatus()
        return Workload(
            kind=kind,
            uid=uid_of(meta),
            namespace=sys.intern(meta.namespace),
            name=meta.name,
            resource_version=meta.resource_version,
            owner=metas.owner(meta),
            replicas=_wanted(kind, spec, status),
            ready_replicas=status.ready_replicas or status.number_ready or status.ready or 0,
        )

    return decode


def _wanted(kind: str, spec: _WorkloadSpec, status: _WorkloadStatus) -> int:
    """An omitted number means one; a DaemonSet wants what its status says."""
    if kind == "DaemonSet":
        return status.desired_number_scheduled or 0
    stated = spec.parallelism if kind == "Job" else spec.replicas
    return 1 if stated is None else stated


class _BudgetSpec(Struct, gc=False):
    selector: WireSelector | None = None


class _BudgetStatus(Struct, rename="camel", gc=False):
    disruptions_allowed: int = 0


class _Budget(Struct, gc=False):
    metadata: WireMeta
    spec: _BudgetSpec | None = None
    status: _BudgetStatus | None = None


_BUDGET = msgspec.json.Decoder(_Budget)


def decode_budget(text: bytes | Raw) -> PodDisruptionBudget:
    wire = _BUDGET.decode(text)
    meta = wire.metadata
    selector = wire.spec.selector if wire.spec else None
    return PodDisruptionBudget(
        uid=uid_of(meta),
        namespace=sys.intern(meta.namespace),
        name=meta.name,
        resource_version=meta.resource_version,
        selector=None if selector is None else LabelSelector(label_selector(selector).requirements),
        disruptions_allowed=wire.status.disruptions_allowed if wire.status else 0,
    )


class _Bare(Struct, gc=False):
    metadata: WireMeta


_BARE = msgspec.json.Decoder(_Bare)


def namespace_decoder(metas: MetaDecoder) -> Callable[[bytes | Raw], Namespace]:
    def decode(text: bytes | Raw) -> Namespace:
        meta = _BARE.decode(text).metadata
        return Namespace(meta.name, uid_of(meta), meta.resource_version, metas.labels(meta), metas.annotations(meta))

    return decode


class _ClaimSpec(Struct, rename="camel", gc=False):
    volume_name: str | None = None
    storage_class_name: str | None = None
    access_modes: list[str] | None = None


class _Claim(Struct, gc=False):
    metadata: WireMeta
    spec: _ClaimSpec | None = None


_CLAIM = msgspec.json.Decoder(_Claim)


def decode_claim(text: bytes | Raw) -> PersistentVolumeClaim:
    wire = _CLAIM.decode(text)
    meta, spec = wire.metadata, wire.spec or _ClaimSpec()
    return PersistentVolumeClaim(
        uid=uid_of(meta),
        namespace=sys.intern(meta.namespace),
        name=meta.name,
        resource_version=meta.resource_version,
        volume=spec.volume_name or "",
        storage_class=sys.intern(spec.storage_class_name or ""),
        exclusive="ReadWriteOncePod" in (spec.access_modes or ()),
        deleting=meta.deletion_timestamp is not None,
    )


class _VolumeAffinity(Struct, gc=False):
    required: WireNodeSelector | None = None


class _VolumeSpec(Struct, rename="camel", gc=False):
    node_affinity: _VolumeAffinity | None = None
    local: dict[str, Raw] | None = None
    host_path: dict[str, Raw] | None = None


class _Volume(Struct, gc=False):
    metadata: WireMeta
    spec: _VolumeSpec | None = None


_VOLUME = msgspec.json.Decoder(_Volume)


def decode_volume(text: bytes | Raw) -> PersistentVolume:
    wire = _VOLUME.decode(text)
    meta, spec = wire.metadata, wire.spec or _VolumeSpec()
    affinity = spec.node_affinity.required if spec.node_affinity else None
    return PersistentVolume(
        name=meta.name,
        uid=uid_of(meta),
        resource_version=meta.resource_version,
        node_affinity=None if affinity is None else node_terms(affinity),
        local=spec.local is not None or spec.host_path is not None,
        zones=_zones(decode_strings(bytes(meta.labels) or b"null")),
    )


def _zones(labels: Mapping[str, str]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Several zones are written as one value, `a__b`; a value with an empty one in it is not looked at."""
    found = ((key, tuple(part.strip() for part in labels[key].split("__"))) for key in ZONE_LABELS if key in labels)
    return tuple((key, values) for key, values in found if all(values))


class _PriorityClass(Struct, gc=False):
    metadata: WireMeta
    value: int = 0


_PRIORITY_CLASS = msgspec.json.Decoder(_PriorityClass)


def decode_priority_class(text: bytes | Raw) -> PriorityClass:
    wire = _PRIORITY_CLASS.decode(text)
    meta = wire.metadata
    return PriorityClass(meta.name, uid_of(meta), meta.resource_version, wire.value)


class _ConfigMap(Struct, gc=False):
    metadata: WireMeta
    data: dict[str, str] | None = None


_CONFIG_MAP = msgspec.json.Decoder(_ConfigMap)


def decode_config_map(text: bytes | Raw) -> ConfigMap:
    wire = _CONFIG_MAP.decode(text)
    meta = wire.metadata
    return ConfigMap(uid_of(meta), meta.namespace, meta.name, meta.resource_version, wire.data or {})
