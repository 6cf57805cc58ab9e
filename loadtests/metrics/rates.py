"""Rates over a sliding window from the kubelets' counters, as metrics-server and rate() compute them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from loadtests.embedded.metrics_api import NodeMetrics, PodMetrics
from loadtests.kubelet.usage import NodeUsage, PodUsage, UsageSource
from reactor.clock import Clock


@dataclass(frozen=True, slots=True)
class PodRate:
    usage: PodUsage
    cores: float
    window: float


@dataclass(frozen=True, slots=True)
class NodeRate:
    usage: NodeUsage
    cores: float
    window: float
    pods: tuple[PodRate, ...]
    """Without those that have been there for too short a time to have a rate."""


@dataclass(frozen=True, slots=True)
class Reading:
    """`at` is wall-clock time. Before there are two samples there is nothing to tell."""

    at: float
    nodes: tuple[NodeRate, ...]


@dataclass(frozen=True, slots=True)
class _Sample:
    at: float
    monotonic: float
    nodes: tuple[NodeUsage, ...]


class UsageSampler:
    """`run` takes a sample every `step`; a rate spans the samples of the last `window` seconds."""

    def __init__(
        self, sources: Sequence[UsageSource], clock: Clock, *, window: float = 10.0, step: float = 1.0
    ) -> None:
        self._sources = sources
        self._clock = clock
        self._window = window
        self._step = step
        self._samples: deque[_Sample] = deque()

    async def run(self) -> None:
        while True:
            self.sample()
            await self._clock.sleep(self._step)

    def sample(self) -> None:
        nodes = tuple(source.usage() for source in self._sources)
        self._samples.append(_Sample(self._clock.now(), self._clock.monotonic(), nodes))
        while self._samples[-1].monotonic - self._samples[0].monotonic > self._window:
            self._samples.popleft()

    def reading(self) -> Reading:
        if len(self._samples) < 2:
            return Reading(self._clock.now(), ())
        newest = self._samples[-1]
        return Reading(newest.at, tuple(self._node_rate(usage) for usage in newest.nodes))

    def _node_rate(self, usage: NodeUsage) -> NodeRate:
        pods = (self._pod_rate(usage.node, pod) for pod in usage.pods)
        first = self._samples[0]
        before = next(node for node in first.nodes if node.node == usage.node)
        span = self._samples[-1].monotonic - first.monotonic
        cores = (usage.cpu_seconds - before.cpu_seconds) / span
        return NodeRate(usage, cores, span, tuple(pod for pod in pods if pod is not None))

    def _pod_rate(self, node: str, pod: PodUsage) -> PodRate | None:
        """Since the oldest sample that has this pod on this node."""
        newest = self._samples[-1]
        for sample in self._samples:
            earlier = _find(sample, node, pod.identity.uid)
            if earlier is not None and sample is not newest:
                span = newest.monotonic - sample.monotonic
                return PodRate(pod, (pod.cpu_seconds - earlier.cpu_seconds) / span, span)
        return None


def _find(sample: _Sample, node: str, uid: str) -> PodUsage | None:
    for usage in sample.nodes:
        if usage.node == node:
            return next((pod for pod in usage.pods if pod.identity.uid == uid), None)
    return None


class LabMetrics:
    """The embedded server's `MetricsProvider`."""

    def __init__(self, sampler: UsageSampler) -> None:
        self._sampler = sampler

    def node_usage(self) -> Iterator[NodeMetrics]:
        reading = self._sampler.reading()
        for node in reading.nodes:
            yield NodeMetrics(node.usage.node, node.cores, node.usage.memory_bytes, reading.at, node.window)

    def pod_usage(self) -> Iterator[PodMetrics]:
        reading = self._sampler.reading()
        for node in reading.nodes:
            for pod in node.pods:
                yield _pod_usage(pod, reading.at)


def _pod_usage(rate: PodRate, at: float) -> PodMetrics:
    identity = rate.usage.identity
    return PodMetrics(
        namespace=identity.namespace,
        name=identity.name,
        containers=((rate.usage.container, rate.cores, rate.usage.memory_bytes),),
        at=at,
        labels=tuple(sorted(identity.labels.items())),
        window_seconds=rate.window,
    )
