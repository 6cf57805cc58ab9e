"""LATENCY's rule, one step of it, on plain values: which pod goes, and where.

Once enough pods are measured, the one with the longest round trip goes (the oldest measurement on a tie). A target
goes only to a node that a probe alone stands on and has measured as nearer; that probe makes way. A probe goes to a
node that nobody has visited in this round. When neither is possible, the placement is stable until a new round.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from matching.latency import Latency, Measurement, Role


@dataclass(frozen=True, slots=True)
class Step:
    why: str
    pod: str = ""
    """Who goes; empty when all stay, and then `why` says why."""
    node: str = ""
    gives_way: str = ""
    """The probe that the target replaces."""
    to: str = ""
    """Where that probe goes; empty when nothing takes it, and it stays beside the target."""


May = Callable[[str, str, str], bool]
"""May this pod go to this node if that other pod (or nobody, when empty) were gone from where it is?"""


@dataclass(frozen=True, slots=True)
class Scene:
    latency: Latency
    where: Mapping[str, str]
    """The node of each pod with a role that has one."""
    movable: frozenset[str]
    nodes: tuple[str, ...]
    """All of them, in the order in which they are tried."""
    may: May

    def measured(self) -> dict[str, Measurement]:
        return {pod: self.latency.last[pod] for pod in sorted(self.where) if pod in self.latency.last}

    def unvisited(self, pod: str) -> list[str]:
        seen = self.latency.visited | set(self.where.values())
        return [node for node in self.nodes if node not in seen and self.may(pod, node, "")]

    def role(self, pod: str) -> Role:
        return self.latency.roles[pod]

    def scouts(self) -> list[str]:
        """Measured probes that stand alone on their node, the nearest first."""
        measured, crowd = self.measured(), Counter(self.where.values())
        alone = [pod for pod in measured if self.role(pod) is Role.PROBE and crowd[self.where[pod]] == 1]
        return sorted(alone, key=lambda pod: measured[pod].rtt)


def next_step(scene: Scene, measurements: int) -> Step:
    measured = scene.measured()
    if len(measured) < measurements:
        return Step(f"{len(measured)} of {measurements} measurements are there")
    free = [pod for pod in measured if pod in scene.movable]
    if not free:
        return Step("none of the measured pods may be moved")
    worst = max(free, key=lambda pod: (measured[pod].rtt, -measured[pod].at))
    return _target(scene, worst) if scene.role(worst) is Role.TARGET else _probe(scene, worst)


def _target(scene: Scene, worst: str) -> Step:
    measured, left = scene.measured(), scene.where[worst]
    for probe in scene.scouts():
        node = scene.where[probe]
        if measured[probe].rtt >= measured[worst].rtt:
            break
        why = f"the farthest, at {shown(measured[worst].rtt)}; {probe} measured {shown(measured[probe].rtt)} on {node}"
        onward = scene.unvisited(probe) if probe in scene.movable else []
        if not onward and probe in scene.movable and scene.may(probe, left, worst):
            onward = [left]
        if onward and scene.may(worst, node, probe):
            return Step(why, worst, node, probe, onward[0])
        if scene.may(worst, node, ""):
            return Step(why, worst, node)
    return Step(f"stable: no probe has found a nearer node that takes {worst}")


def _probe(scene: Scene, worst: str) -> Step:
    unseen = scene.unvisited(worst)
    if not unseen:
        return Step("stable: the farthest is a probe, and every node it may use was visited in this round")
    return Step(f"the farthest, at {shown(scene.latency.last[worst].rtt)}: it tries a new node", worst, unseen[0])


def shown(rtt: float) -> str:
    return f"{rtt * 1000:.0f} ms"
