"""Usage and probe counts that a kubelet reports: counters since the pod started, gauges as of now."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from loadtests.kubelet.pod_spec import PodIdentity


class ProbeKind(StrEnum):
    LIVENESS = "Liveness"
    READINESS = "Readiness"


@dataclass(frozen=True, slots=True)
class PodUsage:
    identity: PodIdentity
    container: str
    cpu_seconds: float
    throttled_seconds: float
    memory_bytes: int


@dataclass(frozen=True, slots=True)
class NodeUsage:
    node: str
    labels: Mapping[str, str]
    pods: tuple[PodUsage, ...]
    cpu_seconds: float
    """Counts pods that are gone, too."""

    @property
    def memory_bytes(self) -> int:
        return sum(pod.memory_bytes for pod in self.pods)


@dataclass(frozen=True, slots=True)
class ProbeCount:
    """One series of prober_probe_total; it goes on across restarts of the container and ends with the pod."""

    identity: PodIdentity
    container: str
    kind: ProbeKind
    successful: bool
    count: int


class UsageSource(Protocol):
    """What the metrics providers need of a kubelet."""

    def usage(self) -> NodeUsage: ...

    def probe_counts(self) -> Iterator[ProbeCount]: ...


class ProbeCounter:
    """Probe results of one container."""

    def __init__(self, identity: PodIdentity, container: str) -> None:
        self._identity = identity
        self._container = container
        self._counts: Counter[tuple[ProbeKind, bool]] = Counter()

    def add(self, kind: ProbeKind, successful: bool) -> None:
        self._counts[kind, successful] += 1

    def series(self) -> Iterator[ProbeCount]:
        for (kind, successful), count in sorted(self._counts.items()):
            yield ProbeCount(self._identity, self._container, kind, successful, count)
