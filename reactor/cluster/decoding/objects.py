"""PodDisruptionBudgets, HorizontalPodAutoscalers, Services, ResourceQuotas, namespaces and ConfigMaps."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping

import msgspec
from msgspec import Raw, Struct

from matching.feasibility import selector_problem
from reactor.cluster.decoding.common import MetaDecoder, WireMeta, WrongField, decode_nanos, inside, is_given, uid_of
from reactor.cluster.decoding.constraints import WireSelector
from reactor.cluster.decoding.constraints import selector as label_selector
from reactor.cluster.decoding.quantity import NANOS
from reactor.cluster.records import (
    ConfigMap,
    HorizontalPodAutoscaler,
    LabelSelector,
    Namespace,
    PodDisruptionBudget,
    ResourceQuota,
    Service,
)


class _PdbSpec(Struct, rename="camel", gc=False):
    selector: WireSelector | None = None
    min_available: int | str | None = None
    max_unavailable: int | str | None = None
    unhealthy_pod_eviction_policy: str | None = None


class _PdbStatus(Struct, rename="camel", gc=False):
    disruptions_allowed: int = 0
    current_healthy: int = 0
    desired_healthy: int = 0
    expected_pods: int = 0


class _Pdb(Struct, gc=False):
    metadata: WireMeta
    spec: _PdbSpec | None = None
    status: _PdbStatus | None = None


_PDB = msgspec.json.Decoder(_Pdb)


def decode_pdb(text: bytes | Raw) -> PodDisruptionBudget:
    wire = _PDB.decode(text)
    meta, spec, status = wire.metadata, wire.spec or _PdbSpec(), wire.status or _PdbStatus()
    return PodDisruptionBudget(
        uid=uid_of(meta),
        namespace=sys.intern(meta.namespace),
        name=meta.name,
        resource_version=meta.resource_version,
        selector=None if spec.selector is None else decode_selector(spec.selector),
        disruptions_allowed=status.disruptions_allowed,
        current_healthy=status.current_healthy,
        desired_healthy=status.desired_healthy,
        expected_pods=status.expected_pods,
        never=_is_share(spec.max_unavailable, 0) or _is_share(spec.min_available, 100),
        always_allows_unhealthy=spec.unhealthy_pod_eviction_policy == "AlwaysAllow",
    )


def _is_share(stated: int | str | None, percent: int) -> bool:
    """Nothing at all may be missing: 0, 0% or, of those that must stay, 100%."""
    if isinstance(stated, int):
        return stated == percent == 0
    return stated is not None and stated.removesuffix("%").lstrip("0") == str(percent).lstrip("0")


def decode_selector(wire: WireSelector) -> LabelSelector:
    found = label_selector(wire)
    problem = selector_problem(found)
    if problem:
        raise WrongField("spec.selector", problem)
    return LabelSelector(found.requirements)


class _ScaleTarget(Struct, gc=False):
    kind: str
    name: str


class _HpaSpec(Struct, rename="camel", gc=False):
    scale_target_ref: _ScaleTarget


class _Hpa(Struct, gc=False):
    metadata: WireMeta
    spec: _HpaSpec


_HPA = msgspec.json.Decoder(_Hpa)


def decode_hpa(text: bytes | Raw) -> HorizontalPodAutoscaler:
    wire = _HPA.decode(text)
    meta, target = wire.metadata, wire.spec.scale_target_ref
    return HorizontalPodAutoscaler(
        uid=uid_of(meta),
        namespace=sys.intern(meta.namespace),
        name=meta.name,
        resource_version=meta.resource_version,
        target_kind=sys.intern(target.kind),
        target_name=target.name,
    )


class _ServiceSpec(Struct, gc=False):
    selector: dict[str, str] | None = None


class _Service(Struct, gc=False):
    metadata: WireMeta
    spec: _ServiceSpec | None = None


_SERVICE = msgspec.json.Decoder(_Service)


def decode_service(text: bytes | Raw) -> Service:
    wire = _SERVICE.decode(text)
    meta, selector = wire.metadata, wire.spec.selector if wire.spec is not None else None
    return Service(uid_of(meta), sys.intern(meta.namespace), meta.name, meta.resource_version, selector or {})


class _QuotaSpec(Struct, rename="camel", gc=False):
    scopes: list[str] | None = None
    scope_selector: Raw = Raw(b"")


class _QuotaStatus(Struct, gc=False):
    hard: Raw = Raw(b"null")
    used: Raw = Raw(b"null")


class _Quota(Struct, gc=False):
    metadata: WireMeta
    spec: _QuotaSpec | None = None
    status: _QuotaStatus | None = None


_QUOTA = msgspec.json.Decoder(_Quota)


def decode_resource_quota(text: bytes | Raw) -> ResourceQuota:
    """`left` from the status: the API server admits pods by it, not by the spec."""
    wire = _QUOTA.decode(text)
    meta, spec, status = wire.metadata, wire.spec or _QuotaSpec(), wire.status or _QuotaStatus()
    scoped = bool(spec.scopes) or is_given(spec.scope_selector)
    return ResourceQuota(
        uid=uid_of(meta),
        namespace=sys.intern(meta.namespace),
        name=meta.name,
        resource_version=meta.resource_version,
        left={} if scoped else _left(status),
    )


def _left(status: _QuotaStatus) -> Mapping[str, float]:
    hard, used = (_quota_amounts(raw, f"status.{name}") for name, raw in (("hard", status.hard), ("used", status.used)))
    return {name: (amount - used.get(name, 0)) / NANOS for name, amount in hard.items()}


def _quota_amounts(raw: Raw, path: str) -> Mapping[str, int]:
    try:
        return decode_nanos(bytes(raw))
    except (WrongField, msgspec.ValidationError) as error:
        raise inside(path, error) from error


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
