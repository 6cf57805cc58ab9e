"""Full is full: no placement helps some unhappy pods. They wait, longer each time, until the cluster changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from matching.missing_text import missing_text
from matching.plan import Plan
from reactor.state.snapshot import Snapshot

LONGEST_WAIT = 600.0
CHANGED_LOAD = 0.05
"""A change of the use of all nodes by this share of their capacity is a reason to look again."""


@dataclass(frozen=True, slots=True)
class ClusterSize:
    """What tells whether the cluster has changed enough that another plan may help."""

    nodes: frozenset[tuple[str, bool, float]]
    """Name, whether pods may go there, cores."""
    used: float
    """Cores in use, as a share of all."""

    @classmethod
    def of(cls, snapshot: Snapshot) -> ClusterSize:
        nodes = snapshot.cluster.nodes.values()
        cores = sum(node.allocatable.get("cpu", 0.0) for node in nodes)
        used = sum(snapshot.usage.node_usage(node.name).cpu.fresh or 0.0 for node in nodes)
        shapes = (
            (node.name, node.ready and not node.unschedulable, node.allocatable.get("cpu", 0.0)) for node in nodes
        )
        return cls(frozenset(shapes), used / cores if cores > 0 else 0.0)

    def differs_from(self, other: ClusterSize) -> bool:
        return self.nodes != other.nodes or abs(self.used - other.used) >= CHANGED_LOAD


@dataclass(frozen=True, slots=True)
class Shortage:
    text: str
    amounts: Mapping[str, float]
    """By resource, in its unit."""
    pods: tuple[str, ...]
    """UIDs of the pods that no placement helps."""
    size: ClusterSize
    times: int = 1
    """Plans in a row that could not help."""

    def wait(self, cooldown: float) -> float:
        """Doubles each time."""
        return max(cooldown, min(cooldown * 2.0 ** min(self.times - 1, 16), LONGEST_WAIT))

    def is_over(self, snapshot: Snapshot) -> bool:
        """Whether none of the pods is unhappy any more."""
        unhappy = (snapshot.happiness.get(uid) for uid in self.pods if uid in snapshot.cluster.pods)
        return not any(found is not None and found.unhappy for found in unhappy)


def shortage_of(plan: Plan, snapshot: Snapshot, before: Shortage | None) -> Shortage | None:
    """None when the plan leaves nobody unhappy who may move."""
    if plan.missing is None:
        return None
    left = {*plan.missing.pods}
    pods = tuple(stay.uid for stay in plan.stays if stay.pod in left)
    times = before.times + 1 if before is not None else 1
    return Shortage(missing_text(plan.missing), plan.missing.amounts, pods, ClusterSize.of(snapshot), times)
