"""Prometheus' query results as typed samples. NaN is an invalid value, None a missing one."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping

from msgspec import Struct

from reactor.cluster.records import NodeUsageSample, PodUsageSample
from reactor.errors import MetricsError
from reactor.signals.measurements import (
    DiskSample,
    LinkSample,
    NetworkSample,
    NodeRateSample,
    PressureSample,
    ProbeCounter,
    ThrottleSample,
)

_NODE_LABELS = ("node", "kubernetes_node", "nodename", "kubernetes_io_hostname", "instance")
_SAME = 0.05
"""Two samples that differ by a smaller share are the same value, scraped twice at different moments."""

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}

PodName = tuple[str, str]


class VectorSample(Struct, frozen=True, gc=False):
    labels: Mapping[str, str]
    value: float
    at: float


def longest_range(query: str) -> float:
    """Seconds of the longest range selector in a query, such as the 120 of `rate(x[2m])`; 0 without any."""
    ranges = (re.findall(r"([0-9]+)([smhd])", inside) for inside in re.findall(r"\[([0-9smhd]+)", query))
    return max((sum(int(number) * _UNITS[unit] for number, unit in parts) for parts in ranges), default=0.0)


def parse_vector(query: str, result: object) -> list[VectorSample]:
    """An instant vector or scalar as `/api/v1/query` returns it."""
    if not isinstance(result, list):
        raise MetricsError(f"metrics.prometheus.queries.{query}: the result is not an instant vector")
    if len(result) == 2 and isinstance(result[1], str):
        return [_sample(query, {}, result)]
    return [_sample(query, item.get("metric"), item.get("value")) for item in result if _is_object(query, item)]


def parse_matrix(query: str, result: object) -> list[VectorSample]:
    """A range as `/api/v1/query_range` returns it, one sample for each series and time."""
    if not isinstance(result, list):
        raise MetricsError(f"metrics.prometheus.queries.{query}: the result is not a range")
    return [
        _sample(query, item.get("metric"), value)
        for item in result
        if _is_object(query, item)
        for value in item.get("values", ())
    ]


def pod_usage(cpu: Iterable[VectorSample], memory: Iterable[VectorSample]) -> list[PodUsageSample]:
    by_cpu, by_memory = _by_pod(cpu), _by_pod(memory)
    samples = []
    for name in by_cpu.keys() | by_memory.keys():
        used, held = by_cpu.get(name), by_memory.get(name)
        at = min(sample.at for sample in (used, held) if sample is not None)
        samples.append(PodUsageSample(*name, used.value if used else None, held.value if held else None, at))
    return samples


def node_usage(cpu: Iterable[VectorSample], memory: Iterable[VectorSample]) -> list[NodeUsageSample]:
    by_cpu, by_memory = _by_node(cpu), _by_node(memory)
    samples = []
    for name in by_cpu.keys() | by_memory.keys():
        used, held = by_cpu.get(name), by_memory.get(name)
        at = min(sample.at for sample in (used, held) if sample is not None)
        samples.append(NodeUsageSample(name, used.value if used else None, held.value if held else None, at))
    return samples


def throttling(shares: Iterable[VectorSample]) -> list[ThrottleSample]:
    return [ThrottleSample(*name, sample.value, sample.at) for name, sample in _by_pod(shares).items()]


def pressure(shares: Iterable[VectorSample]) -> list[PressureSample]:
    return [PressureSample(*name, sample.value, sample.at) for name, sample in _by_pod(shares).items()]


def network_rates(rates: Iterable[VectorSample]) -> list[NetworkSample]:
    return [NetworkSample(*name, sample.value, sample.at) for name, sample in _by_pod(rates).items()]


def disk_rates(rates: Iterable[VectorSample]) -> list[DiskSample]:
    return [DiskSample(*name, sample.value, sample.at) for name, sample in _by_pod(rates).items()]


def link_speeds(speeds: Iterable[VectorSample]) -> list[LinkSample]:
    return [LinkSample(name, sample.value, sample.at) for name, sample in _by_node(speeds).items()]


def node_rates(rates: Iterable[VectorSample]) -> list[NodeRateSample]:
    return [NodeRateSample(name, sample.value, sample.at) for name, sample in _by_node(rates).items()]


def probe_counters(vector: Iterable[VectorSample]) -> list[ProbeCounter]:
    """One per container. A missing result did not happen yet; `unknown` is neither success nor failure."""
    found: dict[tuple[str, str, str, str], dict[str, VectorSample]] = {}
    ambiguous = set()
    for sample in vector:
        labels = sample.labels
        name = (labels.get("namespace", ""), labels.get("pod", ""), labels.get("container", ""))
        key = (*name, labels.get("pod_uid", ""))
        results = found.setdefault(key, {})
        other = results.get(labels.get("result", ""))
        if not _is_valid(sample.value) or (other is not None and not key[3] and other.value != sample.value):
            ambiguous.add(key)
        if other is None or other.value < sample.value:
            results[labels.get("result", "")] = sample
    return [_counter(key, results) for key, results in found.items() if key not in ambiguous]


def single_value(vector: list[VectorSample]) -> float | None:
    """The value of a query that must return one number; None when it does not, or when it is NaN or infinite."""
    return vector[0].value if len(vector) == 1 and math.isfinite(vector[0].value) else None


def node_name(labels: Mapping[str, str]) -> str:
    """The first label that names a node; `host:port` and `[v6]:port` without the port."""
    for label in _NODE_LABELS:
        text = labels.get(label, "")
        if text.startswith("["):
            return text[1:].partition("]")[0]
        if text:
            return text.partition(":")[0] if text.count(":") == 1 else text
    return ""


def _by_pod(vector: Iterable[VectorSample]) -> dict[PodName, VectorSample]:
    found: dict[PodName, VectorSample] = {}
    for sample in vector:
        namespace, pod = sample.labels.get("namespace", ""), sample.labels.get("pod", "")
        if namespace and pod:
            found[namespace, pod] = _merged(found.get((namespace, pod)), sample)
    return found


def _by_node(vector: Iterable[VectorSample]) -> dict[str, VectorSample]:
    found: dict[str, VectorSample] = {}
    for sample in vector:
        name = node_name(sample.labels)
        if name:
            found[name] = _merged(found.get(name), sample)
    return found


def _merged(first: VectorSample | None, second: VectorSample) -> VectorSample:
    """Duplicates that contradict each other are invalid: nothing says which one is right."""
    if first is None or not _is_valid(first.value):
        return second if first is None else first
    if not _is_valid(second.value) or abs(first.value - second.value) > _SAME * max(first.value, second.value):
        return VectorSample(second.labels, math.nan, second.at)
    return first if first.value >= second.value else second


def _counter(key: tuple[str, str, str, str], results: Mapping[str, VectorSample]) -> ProbeCounter:
    namespace, pod, container, uid = key
    good, bad = results.get("successful"), results.get("failed")
    at = max(sample.at for sample in results.values())
    return ProbeCounter(namespace, pod, container, good.value if good else 0.0, bad.value if bad else 0.0, at, uid)


def _is_valid(value: float) -> bool:
    return 0 <= value < math.inf


def _is_object(query: str, item: object) -> bool:
    if isinstance(item, dict):
        return True
    raise MetricsError(f"metrics.prometheus.queries.{query}: the result is not an instant vector")


def _sample(query: str, labels: object, pair: object) -> VectorSample:
    if not isinstance(labels, dict) or not isinstance(pair, list) or len(pair) != 2:
        raise MetricsError(
            f"metrics.prometheus.queries.{query}: the result is not an instant vector; "
            "a range selector such as [5m] must be inside a function"
        )
    try:
        return VectorSample(labels, float(pair[1]), float(pair[0]))
    except (TypeError, ValueError) as error:
        raise MetricsError(f"metrics.prometheus.queries.{query}: {pair[1]!r} is not a number") from error
