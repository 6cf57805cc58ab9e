"""The writes of a controller as finely as kills are aimed: steps of a move, of the journal and of the leader."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any

import msgspec

from loadtests.chaos.requests import Step
from loadtests.chaos.workloads import OURS, WORKLOADS, Owner, Workload

Json = dict[str, Any]
_HASH = "pod-template-hash"


class WriteKind(StrEnum):
    SCALE_UP = "scale up"
    SCALE_DOWN = "scale down"
    COST = "deletion cost"
    RELEASE = "release"
    """The hash is taken off, by which its ReplicaSet lets go of a pod."""
    DETACH = "detach"
    """A released pod leaves its Services and PDBs."""
    REMOVE = "eviction of a released pod"
    TAKE_BACK = "take back"
    """A released pod gets its labels back."""
    EVICT = "eviction"
    HINT = "hint"
    BIND = "bind"
    JOURNAL = "journal"
    STATE = "state"
    LEASE = "lease"


_BY_STEP = {
    Step.HINT: WriteKind.HINT,
    Step.BIND: WriteKind.BIND,
    Step.JOURNAL: WriteKind.JOURNAL,
    Step.STATE: WriteKind.STATE,
    Step.LEASE: WriteKind.LEASE,
}


def write_kind(step: Step, path: str, body: bytes, wanted: Mapping[str, int], orphans: set[str]) -> WriteKind | None:
    """None: not a write, or one that no kill is aimed at. `wanted`: replicas by workload; `orphans`: names of pods."""
    if step in _BY_STEP:
        return _BY_STEP[step]
    if step is Step.EVICT:
        return WriteKind.REMOVE if path.split("/")[-2] in orphans else WriteKind.EVICT
    if step is Step.OWNER:
        return _of_scale(path.split("/")[-2], msgspec.json.decode(body), wanted)
    if step is Step.POD and not path.endswith("/status"):
        return _of_patch(msgspec.json.decode(body).get("metadata") or {})
    return None


def _of_scale(workload: str, body: Json, wanted: Mapping[str, int]) -> WriteKind:
    more = (body.get("spec") or {}).get("replicas", 0) > wanted.get(workload, 0)
    return WriteKind.SCALE_UP if more else WriteKind.SCALE_DOWN


def _of_patch(metadata: Json) -> WriteKind | None:
    labels = metadata.get("labels") or {}
    if not labels:
        return WriteKind.COST if metadata.get("annotations") else None
    if _HASH in labels:
        return WriteKind.RELEASE if labels[_HASH] is None else WriteKind.TAKE_BACK
    return WriteKind.DETACH


def _surged_by_scale(workload: Workload) -> bool:
    """All are served; only a hook spares them to leave their Services first (`reactor.decision.strategies`)."""
    return workload.owner is Owner.REPLICA_SET or (workload.pre_stop and not workload.hpa)


def _surged_by_release(workload: Workload) -> bool:
    return workload.owner is Owner.DEPLOYMENT and not _surged_by_scale(workload)


_MOVED_WITH: Mapping[WriteKind, Callable[[Workload], bool]] = {
    **dict.fromkeys((WriteKind.SCALE_UP, WriteKind.SCALE_DOWN, WriteKind.COST), _surged_by_scale),
    **dict.fromkeys((WriteKind.RELEASE, WriteKind.DETACH, WriteKind.REMOVE, WriteKind.TAKE_BACK), _surged_by_release),
    WriteKind.EVICT: lambda workload: workload.owner is Owner.STATEFUL_SET,
    WriteKind.HINT: lambda workload: workload.scheduler != OURS,
}


def workloads_with(kind: WriteKind | None) -> frozenset[str]:
    """Names of the workloads whose moves have this write; empty when those of all have it."""
    moved_with = _MOVED_WITH.get(kind) if kind is not None else None
    return frozenset(each.name for each in WORKLOADS if moved_with is not None and moved_with(each))
