"""Workloads, PodDisruptionBudgets, namespaces, PVCs, PVs and ConfigMaps."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping

import msgspec
from msgspec import Raw, Struct

from matching.feasibility import ZONE_LABELS, rules_problem, selector_problem
from matching.problem import Rules, Term
from reactor.cluster.decoding.common import MetaDecoder, WireMeta, WrongField, decode_strings, uid_of
from reactor.cluster.decoding.constraints import WireNodeSelector, WireSelector, node_terms
from reactor.cluster.decoding.constraints import selector as label_selector
from reactor.cluster.records import (
    ConfigMap,
    LabelSelector,
    Namespace,
    PersistentVolume,
    PersistentVolumeClaim,
    PodDisruptionBudget,
    Workload,
)


class _WorkloadSpec(Struct, gc=False):
    replicas: int | None = None
    parallelism: int | None = None


class _WorkloadStatus(Struct, rename="camel", gc=False):
    desired_number_scheduled: int | None = None


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
            replicas=_replicas(kind, spec, status),
        )

    return decode


def _replicas(kind: str, spec: _WorkloadSpec, status: _WorkloadStatus) -> int:
    """An omitted number means one; a DaemonSet's number is in its status."""
    if kind == "DaemonSet":
        return status.desired_number_scheduled or 0
    stated = spec.parallelism if kind == "Job" else spec.replicas
    return 1 if stated is None else stated


class _PdbSpec(Struct, gc=False):
    selector: WireSelector | None = None


class _PdbStatus(Struct, rename="camel", gc=False):
    disruptions_allowed: int = 0


class _Pdb(Struct, gc=False):
    metadata: WireMeta
    spec: _PdbSpec | None = None
    status: _PdbStatus | None = None


_PDB = msgspec.json.Decoder(_Pdb)


def decode_pdb(text: bytes | Raw) -> PodDisruptionBudget:
    wire = _PDB.decode(text)
    meta = wire.metadata
    selector = wire.spec.selector if wire.spec else None
    return PodDisruptionBudget(
        uid=uid_of(meta),
        namespace=sys.intern(meta.namespace),
        name=meta.name,
        resource_version=meta.resource_version,
        selector=None if selector is None else _pdb_selector(selector),
        disruptions_allowed=wire.status.disruptions_allowed if wire.status else 0,
    )


def _pdb_selector(wire: WireSelector) -> LabelSelector:
    found = label_selector(wire)
    problem = selector_problem(found)
    if problem:
        raise WrongField("spec.selector", problem)
    return LabelSelector(found.requirements)


class _MetaOnly(Struct, gc=False):
    metadata: WireMeta


_META_ONLY = msgspec.json.Decoder(_MetaOnly)


def namespace_decoder(metas: MetaDecoder) -> Callable[[bytes | Raw], Namespace]:
    def decode(text: bytes | Raw) -> Namespace:
        meta = _META_ONLY.decode(text).metadata
        return Namespace(meta.name, uid_of(meta), meta.resource_version, metas.labels(meta), metas.annotations(meta))

    return decode


class _PvcSpec(Struct, rename="camel", gc=False):
    volume_name: str | None = None
    access_modes: list[str] | None = None


class _PvcStatus(Struct, gc=False):
    phase: str | None = None


class _Pvc(Struct, gc=False):
    metadata: WireMeta
    spec: _PvcSpec | None = None
    status: _PvcStatus | None = None


_PVC = msgspec.json.Decoder(_Pvc)
_BIND_COMPLETED = "pv.kubernetes.io/bind-completed"


def decode_pvc(text: bytes | Raw) -> PersistentVolumeClaim:
    wire = _PVC.decode(text)
    meta, spec = wire.metadata, wire.spec or _PvcSpec()
    return PersistentVolumeClaim(
        uid=uid_of(meta),
        namespace=sys.intern(meta.namespace),
        name=meta.name,
        resource_version=meta.resource_version,
        volume=spec.volume_name or "",
        bind_completed=_BIND_COMPLETED in decode_strings(bytes(meta.annotations) or b"null"),
        lost=wire.status is not None and wire.status.phase == "Lost",
        controller=next((owner.uid for owner in meta.owner_references or () if owner.controller), ""),
        exclusive="ReadWriteOncePod" in (spec.access_modes or ()),
        deleting=meta.deletion_timestamp is not None,
    )


class _PvAffinity(Struct, gc=False):
    required: WireNodeSelector | None = None


class _PvSpec(Struct, rename="camel", gc=False):
    node_affinity: _PvAffinity | None = None
    local: dict[str, Raw] | None = None
    host_path: dict[str, Raw] | None = None


class _Pv(Struct, gc=False):
    metadata: WireMeta
    spec: _PvSpec | None = None


_PV = msgspec.json.Decoder(_Pv)


def decode_pv(text: bytes | Raw) -> PersistentVolume:
    wire = _PV.decode(text)
    meta, spec = wire.metadata, wire.spec or _PvSpec()
    affinity = spec.node_affinity.required if spec.node_affinity else None
    return PersistentVolume(
        name=meta.name,
        uid=uid_of(meta),
        resource_version=meta.resource_version,
        node_affinity=None if affinity is None else _node_affinity(affinity),
        local=spec.local is not None or spec.host_path is not None,
        zones=_zones(decode_strings(bytes(meta.labels) or b"null")),
    )


def _node_affinity(wire: WireNodeSelector) -> tuple[Term, ...]:
    terms = node_terms(wire)
    problem = rules_problem(Rules(volumes=(terms,)))
    if problem:
        raise WrongField("spec.nodeAffinity", problem)
    return terms


def _zones(labels: Mapping[str, str]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Several zones are one value, `a__b`; a value with an empty part is ignored."""
    found = ((key, tuple(part.strip() for part in labels[key].split("__"))) for key in ZONE_LABELS if key in labels)
    return tuple((key, values) for key, values in found if all(values))


class _ConfigMap(Struct, gc=False):
    metadata: WireMeta
    data: dict[str, str] | None = None


_CONFIG_MAP = msgspec.json.Decoder(_ConfigMap)


def decode_config_map(text: bytes | Raw) -> ConfigMap:
    wire = _CONFIG_MAP.decode(text)
    meta = wire.metadata
    return ConfigMap(uid_of(meta), meta.namespace, meta.name, meta.resource_version, wire.data or {})
