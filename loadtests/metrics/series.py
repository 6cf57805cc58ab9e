"""The series of the lab's Prometheus, made on demand from the kubelets and the load generator."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from loadtests.kubelet.usage import UsageSource
from loadtests.metrics.rates import UsageSampler
from loadtests.workloads.samples import LoadSummary


@dataclass(frozen=True, slots=True)
class VectorSample:
    labels: dict[str, str]
    """Without the name."""
    value: float


class RecentLoad(Protocol):
    def recent(self) -> LoadSummary:
        """The requests of the last few seconds."""
        ...


class LabSeries:
    """`load` is None without a load generator; its series are then missing, not zero."""

    def __init__(self, sources: Sequence[UsageSource], sampler: UsageSampler, load: RecentLoad | None = None) -> None:
        self._sources = sources
        self._sampler = sampler
        self._load = load
        self._by_name: dict[str, Callable[[], Iterator[VectorSample]]] = {
            "prober_probe_total": self._probes,
            "lab_pod_cpu_cores": self._pod_cpu,
            "lab_pod_memory_bytes": self._pod_memory,
            "lab_pod_cpu_throttled_seconds_total": self._pod_throttled,
            "lab_node_cpu_cores": self._node_cpu,
            "lab_node_memory_bytes": self._node_memory,
            "lab_availability": self._availability,
            "lab_latency_p95_seconds": self._latency,
        }

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(sorted(self._by_name))

    def named(self, name: str) -> Iterator[VectorSample]:
        make = self._by_name.get(name)
        return make() if make is not None else iter(())

    def _probes(self) -> Iterator[VectorSample]:
        for source in self._sources:
            for probe in source.probe_counts():
                labels = {
                    "container": probe.container,
                    "namespace": probe.identity.namespace,
                    "pod": probe.identity.name,
                    "pod_uid": probe.identity.uid,
                    "probe_type": probe.kind.value,
                    "result": "successful" if probe.successful else "failed",
                }
                yield VectorSample(labels, float(probe.count))

    def _pod_cpu(self) -> Iterator[VectorSample]:
        for node in self._sampler.reading().nodes:
            for pod in node.pods:
                yield VectorSample(_pod_labels(pod.usage.identity.namespace, pod.usage.identity.name), pod.cores)

    def _pod_memory(self) -> Iterator[VectorSample]:
        for source in self._sources:
            for pod in source.usage().pods:
                yield VectorSample(_pod_labels(pod.identity.namespace, pod.identity.name), float(pod.memory_bytes))

    def _pod_throttled(self) -> Iterator[VectorSample]:
        for source in self._sources:
            for pod in source.usage().pods:
                yield VectorSample(_pod_labels(pod.identity.namespace, pod.identity.name), pod.throttled_seconds)

    def _node_cpu(self) -> Iterator[VectorSample]:
        for node in self._sampler.reading().nodes:
            yield VectorSample({"node": node.usage.node}, node.cores)

    def _node_memory(self) -> Iterator[VectorSample]:
        for source in self._sources:
            usage = source.usage()
            yield VectorSample({"node": usage.node}, float(usage.memory_bytes))

    def _availability(self) -> Iterator[VectorSample]:
        if self._load is not None and (share := self._load.recent().availability) is not None:
            yield VectorSample({}, share)

    def _latency(self) -> Iterator[VectorSample]:
        if self._load is not None and (p95 := self._load.recent().p95_ms) is not None:
            yield VectorSample({}, p95 / 1000)


def _pod_labels(namespace: str, name: str) -> dict[str, str]:
    return {"namespace": namespace, "pod": name}
