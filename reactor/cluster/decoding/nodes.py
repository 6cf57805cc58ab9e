"""Nodes."""

from __future__ import annotations

import msgspec
from msgspec import Raw, Struct

from matching.problem import Taint
from reactor.cluster.decoding.common import (
    Memo,
    MetaDecoder,
    Time,
    WireMeta,
    created,
    decode_amounts,
    is_given,
    seconds,
    uid_of,
)
from reactor.cluster.decoding.pod_json import WireCondition
from reactor.cluster.records import Node

_PRESSURES = ("MemoryPressure", "DiskPressure", "PIDPressure")


class _Taint(Struct, gc=False):
    key: str
    effect: str
    value: str | None = None


class _Spec(Struct, gc=False):
    taints: list[_Taint] | None = None
    unschedulable: bool | None = None


class _Address(Struct, gc=False):
    address: str = ""


class _Status(Struct, rename="camel", gc=False):
    allocatable: Raw = Raw(b"")
    capacity: Raw = Raw(b"")
    addresses: list[_Address] | None = None
    conditions: list[WireCondition] | None = None
    declared_features: list[str] | None = None


class _Node(Struct, gc=False):
    metadata: WireMeta
    spec: _Spec | None = None
    status: _Status | None = None


_NODE = msgspec.json.Decoder(_Node)


class _Beat(Struct, rename="camel", gc=False):
    last_heartbeat_time: Time | None = None


class _BeatStatus(Struct, gc=False):
    conditions: list[_Beat] | None = None


class _BeatNode(Struct, gc=False):
    status: _BeatStatus | None = None


_BEAT_NODE = msgspec.json.Decoder(_BeatNode)


def last_heartbeat(text: bytes | Raw) -> float:
    """When the kubelet last wrote the node's status; 0 when it never did, or when that cannot be decoded."""
    try:
        status = _BEAT_NODE.decode(text).status
    except msgspec.ValidationError:
        return 0.0
    beats = (seconds(beat.last_heartbeat_time) or 0.0 for beat in (status.conditions if status else None) or ())
    return max(beats, default=0.0)


class NodeDecoder:
    def __init__(self, metas: MetaDecoder) -> None:
        self._metas = metas
        self._amounts = Memo(decode_amounts)

    def decode(self, text: bytes | Raw) -> Node:
        wire = _NODE.decode(text)
        meta, spec, status = wire.metadata, wire.spec or _Spec(), wire.status or _Status()
        capacity = self._amounts.of(status.capacity, "status.capacity")
        stated = is_given(status.allocatable)
        trues = {condition.type for condition in status.conditions or () if condition.status == "True"}
        return Node(
            name=meta.name,
            uid=uid_of(meta),
            resource_version=meta.resource_version,
            labels=self._metas.labels(meta),
            annotations=self._metas.annotations(meta),
            allocatable=self._amounts.of(status.allocatable, "status.allocatable") if stated else capacity,
            capacity=capacity,
            taints=tuple(Taint(taint.key, taint.effect, taint.value or "") for taint in spec.taints or ()),
            unschedulable=bool(spec.unschedulable),
            ready="Ready" in trues,
            pressure=tuple(name for name in _PRESSURES if name in trues),
            created=created(meta),
            addresses=tuple(entry.address for entry in status.addresses or () if entry.address),
            features=tuple(status.declared_features or ()),
        )
