"""PodMetrics and NodeMetrics of metrics.k8s.io."""

from __future__ import annotations

import msgspec
from msgspec import Raw, Struct

from reactor.cluster.decoding.common import Time, WrongField, inside
from reactor.cluster.decoding.quantity import parse_quantity
from reactor.cluster.records import NodeUsageSample, PodUsageSample


class _Meta(Struct, gc=False):
    name: str
    namespace: str = ""


class _Usage(Struct, gc=False):
    cpu: str | int | float | None = None
    memory: str | int | float | None = None


class _Container(Struct, gc=False):
    usage: _Usage


class _PodMetrics(Struct, gc=False):
    metadata: _Meta
    timestamp: Time
    containers: list[_Container] | None = None


class _NodeMetrics(Struct, gc=False):
    metadata: _Meta
    timestamp: Time
    usage: _Usage


_POD = msgspec.json.Decoder(_PodMetrics)
_NODE = msgspec.json.Decoder(_NodeMetrics)


def decode_pod_metrics(text: bytes | Raw) -> PodUsageSample:
    """The sum of the containers; None where the value of one is missing."""
    wire = _POD.decode(text)
    usages = [container.usage for container in wire.containers or ()]
    return PodUsageSample(
        namespace=wire.metadata.namespace,
        pod=wire.metadata.name,
        cpu=_sum([usage.cpu for usage in usages], "cpu"),
        memory=_sum([usage.memory for usage in usages], "memory"),
        at=wire.timestamp.timestamp(),
    )


def decode_node_metrics(text: bytes | Raw) -> NodeUsageSample:
    wire = _NODE.decode(text)
    return NodeUsageSample(
        node=wire.metadata.name,
        cpu=_sum([wire.usage.cpu], "cpu"),
        memory=_sum([wire.usage.memory], "memory"),
        at=wire.timestamp.timestamp(),
    )


def _sum(quantities: list[str | int | float | None], axis: str) -> float | None:
    if not quantities:
        return None
    total = 0.0
    for quantity in quantities:
        if quantity is None:
            return None
        try:
            total += parse_quantity(quantity)
        except ValueError as error:
            raise inside("usage", WrongField(axis, str(error))) from error
    return total
