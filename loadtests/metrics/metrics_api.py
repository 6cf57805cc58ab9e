"""What the embedded API server serves as metrics.k8s.io, from the kubelets' counters over a sliding window."""

from __future__ import annotations

from collections.abc import Iterator

from loadtests.embedded.metrics_api import NodeUsage, PodUsage
from loadtests.metrics.rates import PodRate, UsageSampler


class LabMetrics:
    """The embedded server's `MetricsProvider`."""

    def __init__(self, sampler: UsageSampler) -> None:
        self._sampler = sampler

    def node_usage(self) -> Iterator[NodeUsage]:
        reading = self._sampler.reading()
        for node in reading.nodes:
            yield NodeUsage(node.usage.node, node.cores, node.usage.memory_bytes, reading.at, node.window)

    def pod_usage(self) -> Iterator[PodUsage]:
        reading = self._sampler.reading()
        for node in reading.nodes:
            for pod in node.pods:
                yield _pod_usage(pod, reading.at)


def _pod_usage(rate: PodRate, at: float) -> PodUsage:
    identity = rate.usage.identity
    return PodUsage(
        namespace=identity.namespace,
        name=identity.name,
        containers=((rate.usage.container, rate.cores, rate.usage.memory_bytes),),
        at=at,
        labels=tuple(sorted(identity.labels.items())),
        window_seconds=rate.window,
    )
