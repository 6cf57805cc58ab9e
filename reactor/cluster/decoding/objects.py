"""Workloads, PodDisruptionBudgets, namespaces and ConfigMaps."""

from __future__ import annotations

import sys
from collections.abc import Callable

import msgspec
from msgspec import Raw, Struct

from matching.feasibility import selector_problem
from reactor.cluster.decoding.common import MetaDecoder, WireMeta, WrongField, uid_of
from reactor.cluster.decoding.constraints import WireSelector
from reactor.cluster.decoding.constraints import selector as label_selector
from reactor.cluster.records import (
    ConfigMap,
    LabelSelector,
    Namespace,
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


class _ConfigMap(Struct, gc=False):
    metadata: WireMeta
    data: dict[str, str] | None = None


_CONFIG_MAP = msgspec.json.Decoder(_ConfigMap)


def decode_config_map(text: bytes | Raw) -> ConfigMap:
    wire = _CONFIG_MAP.decode(text)
    meta = wire.metadata
    return ConfigMap(uid_of(meta), meta.namespace, meta.name, meta.resource_version, wire.data or {})
