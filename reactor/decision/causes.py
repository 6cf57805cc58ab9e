"""Can its node be the cause of a pod's unhappiness? Only then can a move help."""

from __future__ import annotations

from dataclasses import dataclass

from matching.feasibility import VETOES
from matching.problem import Node as ProblemNode
from matching.problem import Rules
from reactor.cluster.pod_constraints import rules_of
from reactor.cluster.records import Node, Pod
from reactor.settings.model import Settings
from reactor.state.snapshot import MEASURED, Needs, Snapshot

THROTTLED = 0.25


@dataclass(frozen=True, slots=True)
class Cause:
    """`known` is False without fresh metrics: then nothing is moved."""

    known: bool
    helps: bool
    text: str


@dataclass(frozen=True, slots=True)
class NodeUse:
    """Use as a share of allocatable, by axis."""

    shares: dict[str, float]

    @property
    def worst(self) -> tuple[str, float]:
        axis = max(self.shares, key=lambda name: self.shares[name])
        return axis, self.shares[axis]


def node_use(node: Node, snapshot: Snapshot) -> NodeUse | None:
    """None when an axis is not freshly measured: unknown is not idle."""
    used = _requested(node, snapshot) if snapshot.needs is Needs.REQUESTS else _measured(node, snapshot)
    totals = [node.allocatable.get(axis, 0.0) for axis in MEASURED]
    if used is None or min(totals) <= 0:
        return None
    return NodeUse({axis: amount / total for axis, amount, total in zip(MEASURED, used, totals, strict=True)})


def _measured(node: Node, snapshot: Snapshot) -> tuple[float, float] | None:
    usage = snapshot.usage.node_usage(node.name)
    cpu, memory = usage.cpu.fresh, usage.memory.fresh
    return None if cpu is None or memory is None else (cpu, memory)


def _requested(node: Node, snapshot: Snapshot) -> tuple[float, float]:
    pods = [pod for pod in snapshot.cluster.pods_on(node.name) if not pod.finished]
    cpu, memory = (sum(pod.requests.get(axis, 0.0) for pod in pods) for axis in MEASURED)
    return cpu, memory


def admits(node: Node, rules: Rules) -> bool:
    """Whether the node takes pods with these rules at all; resources do not count."""
    candidate = ProblemNode(
        node.name, (), labels=node.labels, taints=node.taints, unschedulable=node.unschedulable, ready=node.ready
    )
    return not any(veto(rules, candidate) for veto in VETOES)


def placement_cause(pod: Pod, snapshot: Snapshot, settings: Settings) -> Cause:
    node = snapshot.cluster.nodes.get(pod.node or "")
    if node is None:
        return Cause(False, False, f"its node {pod.node} is not known")
    if not _pod_known(pod, snapshot):
        return Cause(False, False, f"no fresh metrics of {pod.key}")
    if not node.ready:
        return Cause(True, True, f"{node.name} is not Ready")
    if node.pressure:
        return Cause(True, True, f"{node.name} reports {', '.join(node.pressure)}")
    use = node_use(node, snapshot)
    if use is None:
        return Cause(False, False, f"no fresh metrics of {node.name}")
    axis, share = use.worst
    if share >= settings.decision.node_pressure:
        return Cause(True, True, f"{node.name} uses {share:.0%} of its {axis}")
    return _better_elsewhere(pod, node, use, snapshot, settings)


def _pod_known(pod: Pod, snapshot: Snapshot) -> bool:
    return snapshot.needs is Needs.REQUESTS or snapshot.usage.usage(pod.uid).known


def _better_elsewhere(pod: Pod, here: Node, use: NodeUse, snapshot: Snapshot, settings: Settings) -> Cause:
    axis, share = use.worst
    rules = rules_of(pod, snapshot.cluster)
    best: tuple[float, str] | None = None
    for node in snapshot.cluster.nodes.values():
        other = node_use(node, snapshot) if node.name != here.name and admits(node, rules) else None
        if other is not None and (best is None or (other.worst[1], node.name) < best):
            best = (other.worst[1], node.name)
    if best is not None and share - best[0] >= settings.decision.clearly_better:
        return Cause(True, True, f"{here.name} uses {share:.0%} of its {axis}, {best[1]} only {best[0]:.0%}")
    text = f"{here.name} uses only {share:.0%} of its {axis} and no node is clearly better"
    return Cause(True, False, text + _own_limit(pod, snapshot))


def _own_limit(pod: Pod, snapshot: Snapshot) -> str:
    """A pod is throttled by its own limit on every node: worth a message, not a move."""
    throttled = snapshot.usage.throttled(pod.uid).fresh
    if throttled is None or throttled < THROTTLED:
        return ""
    return f"; it runs into its own CPU limit in {throttled:.0%} of the time: raise the limit"
