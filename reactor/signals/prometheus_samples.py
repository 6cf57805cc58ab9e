"""Prometheus' answers as typed samples: what a series says wrongly is NaN (invalid), what nobody says is None."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping

from msgspec import Struct

from reactor.cluster.records import NodeUsageSample, PodUsageSample
from reactor.errors import MetricsError
from reactor.signals.measurements import LinkSample, NetworkSample, ProbeCounter, ThrottleSample

_NODE_LABELS = ("node", "kubernetes_node", "nodename", "kubernetes_io_hostname", "instance")
_SAME = 0.05
"""Two series of one thing that differ by less are the same thing scraped twice at different moments."""

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
    """An instant vector (or scalar) as `/api/v1/query` prints it."""
    if not isinstance(result, list):
        raise MetricsError(f"metrics.prometheus.queries.{query}: the answer is no instant vector")
    if len(result) == 2 and isinstance(result[1], str):
        return [_series(query, {}, result)]
    return [_series(query, item.get("metric"), item.get("value")) for item in result if _is_object(query, item)]


def pod_usage(cpu: Iterable[VectorSample], memory: Iterable[VectorSample]) -> list[PodUsageSample]:
    by_cpu, by_memory = _by_pod(cpu), _by_pod(memory)
    samples = []
    for name in by_cpu.keys() | by_memory.keys():
        used, held = by_cpu.get(name), by_memory.get(name)
        at = min(series.at for series in (used, held) if series is not None)
        samples.append(PodUsageSample(*name, used.value if used else None, held.value if held else None, at))
    return samples


def node_usage(cpu: Iterable[VectorSample], memory: Iterable[VectorSample]) -> list[NodeUsageSample]:
    by_cpu, by_memory = _by_node(cpu), _by_node(memory)
    samples = []
    for name in by_cpu.keys() | by_memory.keys():
        used, held = by_cpu.get(name), by_memory.get(name)
        at = min(series.at for series in (used, held) if series is not None)
        samples.append(NodeUsageSample(name, used.value if used else None, held.value if held else None, at))
    return samples


def throttling(shares: Iterable[VectorSample]) -> list[ThrottleSample]:
    return [ThrottleSample(*name, series.value, series.at) for name, series in _by_pod(shares).items()]


def network_rates(rates: Iterable[VectorSample]) -> list[NetworkSample]:
    return [NetworkSample(*name, series.value, series.at) for name, series in _by_pod(rates).items()]


def link_speeds(speeds: Iterable[VectorSample]) -> list[LinkSample]:
    return [LinkSample(name, series.value, series.at) for name, series in _by_node(speeds).items()]


def probe_counters(vector: Iterable[VectorSample]) -> list[ProbeCounter]:
    """One per container. A result that is not there has not happened yet; `unknown` is neither success nor failure."""
    found: dict[tuple[str, str, str, str], dict[str, VectorSample]] = {}
    ambiguous = set()
    for series in vector:
        labels = series.labels
        name = (labels.get("namespace", ""), labels.get("pod", ""), labels.get("container", ""))
        key = (*name, labels.get("pod_uid", ""))
        results = found.setdefault(key, {})
        other = results.get(labels.get("result", ""))
        if not _is_good(series.value) or (other is not None and not key[3] and other.value != series.value):
            ambiguous.add(key)
        if other is None or other.value < series.value:
            results[labels.get("result", "")] = series
    return [_counter(key, results) for key, results in found.items() if key not in ambiguous]


def single_value(vector: list[VectorSample]) -> float | None:
    """Of a query that must give one number; None when it does not, or when the number is none."""
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
    for series in vector:
        namespace, pod = series.labels.get("namespace", ""), series.labels.get("pod", "")
        if namespace and pod:
            found[namespace, pod] = _one_of(found.get((namespace, pod)), series)
    return found


def _by_node(vector: Iterable[VectorSample]) -> dict[str, VectorSample]:
    found: dict[str, VectorSample] = {}
    for series in vector:
        name = node_name(series.labels)
        if name:
            found[name] = _one_of(found.get(name), series)
    return found


def _one_of(first: VectorSample | None, second: VectorSample) -> VectorSample:
    """Duplicates that contradict each other are no measurement: nobody can tell which is right."""
    if first is None or not _is_good(first.value):
        return second if first is None else first
    if not _is_good(second.value) or abs(first.value - second.value) > _SAME * max(first.value, second.value):
        return VectorSample(second.labels, math.nan, second.at)
    return first if first.value >= second.value else second


def _counter(key: tuple[str, str, str, str], results: Mapping[str, VectorSample]) -> ProbeCounter:
    namespace, pod, container, uid = key
    good, bad = results.get("successful"), results.get("failed")
    at = max(series.at for series in results.values())
    return ProbeCounter(namespace, pod, container, good.value if good else 0.0, bad.value if bad else 0.0, at, uid)


def _is_good(value: float) -> bool:
    return 0 <= value < math.inf


def _is_object(query: str, item: object) -> bool:
    if isinstance(item, dict):
        return True
    raise MetricsError(f"metrics.prometheus.queries.{query}: the answer is no instant vector")


def _series(query: str, labels: object, pair: object) -> VectorSample:
    if not isinstance(labels, dict) or not isinstance(pair, list) or len(pair) != 2:
        raise MetricsError(
            f"metrics.prometheus.queries.{query}: the answer is no instant vector; "
            "a range selector such as [5m] must stand inside a function"
        )
    try:
        return VectorSample(labels, float(pair[1]), float(pair[0]))
    except (TypeError, ValueError) as error:
        raise MetricsError(f"metrics.prometheus.queries.{query}: {pair[1]!r} is not a number") from error
