"""Workloads: ReplicaSets, Deployments, StatefulSets, DaemonSets and Jobs.

Most of them are ReplicaSets of past revisions, with no replicas: of these only the numbers are decoded.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from typing import NamedTuple

import msgspec
from msgspec import Raw, Struct

from reactor.cluster.decoding.common import MetaDecoder, WireMeta, WrongField, decode_strings, inside, is_given, uid_of
from reactor.cluster.decoding.constraints import WireSelector
from reactor.cluster.decoding.objects import decode_selector
from reactor.cluster.decoding.templates import OWNERS_OF_MOVED_PODS, TemplateDecoder
from reactor.cluster.records import LabelSelector, Workload

OUR_FIELD_MANAGER = "rematch"
"""Our writes carry this field manager; what we wrote ourselves is no other owner of the replicas."""
SURGE_MANAGER = f"{OUR_FIELD_MANAGER}-surge/"
"""The beginning of the field manager of our scale-ups."""

_TRACKING = (
    "argocd.argoproj.io/instance",
    "argocd.argoproj.io/tracking-id",
    "kustomize.toolkit.fluxcd.io/name",
    "helm.toolkit.fluxcd.io/name",
    "configsync.gke.io/resource-id",
    "fleet.cattle.io/bundle-id",
)
"""Labels and annotations by which GitOps tools find the objects that they own."""
_PERCENTAGE = re.compile(r"[0-9]{1,9}%")


class _Rolling(Struct, rename="camel", gc=False):
    max_surge: int | str | None = None
    max_unavailable: int | str | None = None


class _Strategy(Struct, rename="camel", gc=False):
    type: str | None = None
    rolling_update: _Rolling | None = None


class _Spec(Struct, rename="camel", gc=False):
    replicas: int | None = None
    parallelism: int | None = None
    paused: bool | None = None
    min_ready_seconds: int | None = None
    strategy: _Strategy | None = None
    update_strategy: _Strategy | None = None
    selector: Raw = Raw(b"")
    template: Raw = Raw(b"")


class _Status(Struct, rename="camel", gc=False):
    desired_number_scheduled: int | None = None
    observed_generation: int | None = None
    replicas: int | None = None
    ready_replicas: int | None = None
    available_replicas: int | None = None
    updated_replicas: int | None = None
    terminating_replicas: int | None = None
    current_revision: str | None = None
    update_revision: str | None = None


class _Workload(Struct, gc=False):
    metadata: WireMeta
    spec: _Spec | None = None
    status: _Status | None = None


_WORKLOAD = msgspec.json.Decoder(_Workload)


def workload_decoder(kind: str, metas: MetaDecoder, templates: TemplateDecoder) -> Callable[[bytes | Raw], Workload]:
    def decode(text: bytes | Raw) -> Workload:
        wire = _WORKLOAD.decode(text)
        meta, spec, status = wire.metadata, wire.spec or _Spec(), wire.status or _Status()
        replicas, owner = _replicas(kind, spec, status), metas.owner(meta)
        update = _update(kind, spec, replicas)
        scalable = kind in ("Deployment", "StatefulSet") or (kind == "ReplicaSet" and owner is None)
        managers = _replicas_managers(meta) if scalable else ()
        return Workload(
            kind=kind,
            uid=uid_of(meta),
            namespace=sys.intern(meta.namespace),
            name=meta.name,
            resource_version=meta.resource_version,
            owner=owner,
            replicas=replicas,
            generation=meta.generation,
            observed_generation=status.observed_generation or 0,
            existing=status.replicas or 0,
            ready=status.ready_replicas or 0,
            available=status.available_replicas or 0,
            updated=status.updated_replicas or 0,
            terminating=status.terminating_replicas,
            paused=bool(spec.paused),
            update_strategy=update.strategy,
            max_surge=update.max_surge,
            max_unavailable=update.max_unavailable,
            min_ready_seconds=spec.min_ready_seconds or 0,
            current_revision=status.current_revision or "",
            update_revision=status.update_revision or "",
            replicas_managers=tuple(name for name in managers if not name.startswith(OUR_FIELD_MANAGER)),
            surge=_surge(managers),
            gitops=_gitops(meta) if scalable else "",
            rules=templates.rules(spec.template) if kind in OWNERS_OF_MOVED_PODS and replicas > 0 else None,
            selector=_selector(spec) if replicas > 0 or status.replicas else None,
        )

    return decode


def _replicas(kind: str, spec: _Spec, status: _Status) -> int:
    """An omitted number means one; a DaemonSet's number is in its status."""
    if kind == "DaemonSet":
        return status.desired_number_scheduled or 0
    stated = spec.parallelism if kind == "Job" else spec.replicas
    return 1 if stated is None else stated


class _Update(NamedTuple):
    strategy: str
    max_surge: int = 0
    max_unavailable: int = 0


def _update(kind: str, spec: _Spec, replicas: int) -> _Update:
    """As the Deployment controller rounds: where both limits come to nothing, one pod may be missing."""
    if kind == "Deployment":
        stated = spec.strategy or _Strategy()
        if stated.type == "Recreate":
            return _Update("Recreate", 0, replicas)
        rolling = stated.rolling_update or _Rolling()
        surge = _pods(rolling.max_surge, "25%", replicas, "spec.strategy.rollingUpdate.maxSurge", up=True)
        path = "spec.strategy.rollingUpdate.maxUnavailable"
        unavailable = _pods(rolling.max_unavailable, "25%", replicas, path)
        return _Update("RollingUpdate", surge, 1 if surge == unavailable == 0 else unavailable)
    if kind == "StatefulSet":
        stated = spec.update_strategy or _Strategy()
        rolling = stated.rolling_update or _Rolling()
        path = "spec.updateStrategy.rollingUpdate.maxUnavailable"
        return _Update(sys.intern(stated.type or "RollingUpdate"), 0, _pods(rolling.max_unavailable, 1, replicas, path))
    return _Update("")


def _pods(stated: int | str | None, default: int | str, replicas: int, path: str, *, up: bool = False) -> int:
    """A number of pods, or a percentage of the replicas. The API server fills in the default; files may lack it."""
    value = default if stated is None else stated
    if isinstance(value, int):
        return value
    if not _PERCENTAGE.fullmatch(value):
        raise WrongField(path, f"{value!r} is neither a number nor a percentage such as 25%")
    share = int(value[:-1]) * replicas
    return -(-share // 100) if up else share // 100


_SELECTOR = msgspec.json.Decoder(WireSelector | None)


def _selector(spec: _Spec) -> LabelSelector | None:
    if not is_given(spec.selector):
        return None
    try:
        wire = _SELECTOR.decode(spec.selector)
        return None if wire is None else decode_selector(wire)
    except msgspec.ValidationError as error:
        raise inside("spec.selector", error) from error


class _ManagedSpec(Struct, rename={"replicas": "f:replicas"}, gc=False):
    replicas: Raw = Raw(b"")


class _ManagedFields(Struct, rename={"spec": "f:spec"}, gc=False):
    spec: _ManagedSpec | None = None


class _Manager(Struct, rename={"fields": "fieldsV1"}, gc=False):
    manager: str = ""
    fields: _ManagedFields | None = None


_MANAGERS = msgspec.json.Decoder(list[_Manager] | None)


def _replicas_managers(meta: WireMeta) -> tuple[str, ...]:
    if b'"f:replicas"' not in bytes(meta.managed_fields):
        return ()
    try:
        found = _MANAGERS.decode(meta.managed_fields) or []
    except msgspec.ValidationError as error:
        raise inside("metadata.managedFields", error) from error
    owners = {
        each.manager for each in found if each.fields and each.fields.spec and is_given(each.fields.spec.replicas)
    }
    return tuple(sys.intern(name) for name in sorted(owners))


def _surge(managers: tuple[str, ...]) -> str:
    """Where somebody else has set the same number, it is theirs, too."""
    only = managers[0] if len(managers) == 1 else ""
    return only.removeprefix(SURGE_MANAGER) if only.startswith(SURGE_MANAGER) else ""


def _gitops(meta: WireMeta) -> str:
    """The bytes are searched first: an annotation holds the whole object as it was applied, and decoding that of every
    workload takes longer than all the rest."""
    for raw, path in ((meta.labels, "metadata.labels"), (meta.annotations, "metadata.annotations")):
        text = bytes(raw)
        if not any(key.encode() in text for key in _TRACKING):
            continue
        try:
            stated = decode_strings(text)
        except msgspec.ValidationError as error:
            raise inside(path, error) from error
        for key in _TRACKING:
            if key in stated:
                return key
    return ""
