"""One step: what it starts from, and what it does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from matching.problem import Latency, LatencyMeasurement, Role

May = Callable[[str, str, str], bool]
"""Whether the pod may go to the node if the other pod (none, when empty) were gone from its node."""


@dataclass(frozen=True, slots=True)
class LatencyStep:
    why: str
    pod: str = ""
    """The pod that moves; empty when all stay, and then `why` says why."""
    node: str = ""
    probe: str = ""
    """A probe that moves in the same step, because the target takes its node or because there is more to try."""
    to: str = ""
    """The node that this probe moves to."""


@dataclass(frozen=True, slots=True)
class LatencyState:
    latency: Latency
    where: Mapping[str, str]
    """The node of each pod with a role that has one."""
    movable: frozenset[str]
    nodes: tuple[str, ...]
    """All of them, in the order in which they are tried."""
    may: May

    def measured(self) -> dict[str, LatencyMeasurement]:
        return {pod: self.latency.last[pod] for pod in sorted(self.where) if pod in self.latency.last}

    def farthest_first(self) -> list[str]:
        """The measured pods that may move; of equals the one with the oldest measurement is first."""
        measured = self.measured()
        free = [pod for pod in measured if pod in self.movable]
        return sorted(free, key=lambda pod: (-measured[pod].rtt, measured[pod].at))

    def unvisited(self, pod: str) -> list[str]:
        seen = self.latency.visited | set(self.where.values())
        return [node for node in self.nodes if node not in seen and self.may(pod, node, "")]

    def role(self, pod: str) -> Role:
        return self.latency.roles[pod]

    def lone_probes(self) -> list[str]:
        """Measured probes that are alone on their node, the nearest first."""
        measured, pods_on = self.measured(), Counter(self.where.values())
        alone = [pod for pod in measured if self.role(pod) is Role.PROBE and pods_on[self.where[pod]] == 1]
        return sorted(alone, key=lambda pod: measured[pod].rtt)

    def onward(self, probe: str, target: str) -> str:
        """Where the probe goes when the target takes its node; empty when no node takes it and it stays."""
        if probe not in self.movable:
            return ""
        left = self.where[target]
        return next(iter(self.unvisited(probe)), left if self.may(probe, left, target) else "")


def waits(state: LatencyState, measurements: int) -> str:
    """Why no step can be chosen; empty when one can."""
    measured = state.measured()
    if len(measured) < measurements:
        return f"{len(measured)} of {measurements} measurements are there"
    return "" if state.farthest_first() else "none of the measured pods may be moved"


def shown(rtt: float) -> str:
    return f"{rtt * 1000:.0f} ms"
