from __future__ import annotations

from collections.abc import Iterator

import pytest

from loadtests.kubelet.pod_spec import PodIdentity
from loadtests.kubelet.usage import NodeUsage, PodUsage, ProbeCount, ProbeKind


class ManualClock:
    def __init__(self) -> None:
        self.time = 0.0

    def now(self) -> float:
        return 1_794_790_000.0 + self.time

    def monotonic(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.time += seconds


class ManualKubelet:
    """A kubelet whose counters the test turns."""

    def __init__(self, node: str) -> None:
        self.node = node
        self.pods: dict[str, float] = {}
        self.gone = 0.0
        self.probes: list[ProbeCount] = []

    def usage(self) -> NodeUsage:
        pods = tuple(PodUsage(identity(name), "web", used, 0.0, 2**20) for name, used in self.pods.items())
        return NodeUsage(self.node, {"kubernetes.io/hostname": self.node}, pods, sum(self.pods.values()) + self.gone)

    def probe_counts(self) -> Iterator[ProbeCount]:
        return iter(self.probes)

    def count(self, name: str, kind: ProbeKind, successful: bool, count: int) -> None:
        self.probes.append(ProbeCount(identity(name), "web", kind, successful, count))


def identity(name: str) -> PodIdentity:
    return PodIdentity("shop", name, f"uid-{name}", "1", {"app": name})


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def kubelet() -> ManualKubelet:
    return ManualKubelet("node1")
