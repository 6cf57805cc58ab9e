"""Can its node be the cause of a pod's unhappiness? Only then can a move help."""

from __future__ import annotations

from dataclasses import dataclass
from operator import itemgetter

from matching.feasibility import VETOES, cordoned
from matching.problem import Node as ProblemNode
from matching.problem import Rules
from reactor.cluster.pod_constraints import rules_of
from reactor.cluster.records import Node, Pod
from reactor.settings.model import Settings
from reactor.signals.workloads import workload_key
from reactor.state.snapshot import MEASURED, Needs, Snapshot

THROTTLED = 0.25


@dataclass(frozen=True, slots=True)
class Cause:
    """`known` is False without fresh metrics: then nothing is moved."""

    known: bool
    helps: bool
    text: str
    pressure: bool = False
    """The node itself is short of something, whatever the pod says."""


def node_use(node: Node, snapshot: Snapshot) -> dict[str, float] | None:
    """Use as a share of allocatable, by axis. None when an axis is not freshly measured: unknown is not idle."""
    used = _requested(node, snapshot) if snapshot.needs is Needs.REQUESTS else _measured(node, snapshot)
    totals = [node.allocatable.get(axis, 0.0) for axis in MEASURED]
    if used is None or min(totals) <= 0:
        return None
    return {axis: amount / total for axis, amount, total in zip(MEASURED, used, totals, strict=True)}


def _measured(node: Node, snapshot: Snapshot) -> tuple[float, float] | None:
    """Pods that are Ready only since the measurement are charged with their peak, or the next pod would follow."""
    usage = snapshot.usage.node_usage(node.name)
    cpu, memory = usage.cpu.fresh, usage.memory.fresh
    if cpu is None or memory is None:
        return None
    new = [pod for pod in snapshot.cluster.pods_on(node.name) if (pod.ready_since or 0.0) > usage.cpu.at]
    charged = [_charge(pod, snapshot) for pod in new if not pod.finished]
    return cpu + sum(each[0] for each in charged), memory + sum(each[1] for each in charged)


def _charge(pod: Pod, snapshot: Snapshot) -> tuple[float, float]:
    peak = snapshot.usage.workload_peak(workload_key(pod))
    cpu, memory = (pod.requests.get(axis, 0.0) for axis in MEASURED)
    return (cpu if peak.cpu is None else peak.cpu, memory if peak.memory is None else peak.memory)


def _requested(node: Node, snapshot: Snapshot) -> tuple[float, float]:
    pods = [pod for pod in snapshot.cluster.pods_on(node.name) if not pod.finished]
    cpu, memory = (sum(pod.requests.get(axis, 0.0) for pod in pods) for axis in MEASURED)
    return cpu, memory


def admits(node: Node, rules: Rules) -> bool:
    """Whether a running pod with these rules may be moved to the node at all; resources do not count."""
    candidate = ProblemNode(
        node.name,
        (),
        labels=node.labels,
        taints=node.taints,
        unschedulable=node.unschedulable,
        ready=node.ready,
        features=node.features,
    )
    return not cordoned(candidate) and not any(veto(rules, candidate) for veto in VETOES)


def placement_cause(pod: Pod, snapshot: Snapshot, settings: Settings) -> Cause:
    node = snapshot.cluster.nodes.get(pod.node or "")
    if node is None:
        return Cause(False, False, f"its node {pod.node} is not known")
    if not _pod_known(pod, snapshot):
        return Cause(False, False, f"no fresh metrics of {pod.key}")
    if not node.ready:
        return Cause(True, True, f"{node.name} is not Ready", pressure=True)
    if node.pressure:
        return Cause(True, True, f"{node.name} reports {', '.join(node.pressure)}", pressure=True)
    use = node_use(node, snapshot)
    if use is None:
        return Cause(False, False, f"no fresh metrics of {node.name}")
    axis, share = max(use.items(), key=itemgetter(1))
    if share >= settings.decision.node_pressure:
        return Cause(True, True, f"{node.name} uses {share:.0%} of its {axis}", pressure=True)
    best = _least_used(pod, snapshot)
    if best is not None and share - best[0] >= settings.decision.clearly_better:
        return Cause(True, True, f"{node.name} uses {share:.0%} of its {axis}, {best[1]} only {best[0]:.0%}")
    text = f"{node.name} uses only {share:.0%} of its {axis} and no node is clearly better"
    return Cause(True, False, text + _own_limit(pod, snapshot))


def _pod_known(pod: Pod, snapshot: Snapshot) -> bool:
    return snapshot.needs is Needs.REQUESTS or snapshot.usage.usage(pod.uid).known


def _least_used(pod: Pod, snapshot: Snapshot) -> tuple[float, str] | None:
    """The use of the least used other node that takes the pod, and its name."""
    rules = rules_of(pod, snapshot.cluster)
    others = (node for node in snapshot.cluster.nodes.values() if node.name != pod.node and admits(node, rules))
    uses = ((node_use(node, snapshot), node.name) for node in others)
    return min(((max(use.values()), name) for use, name in uses if use is not None), default=None)


def _own_limit(pod: Pod, snapshot: Snapshot) -> str:
    """A pod is throttled by its own limit on every node: worth a message, not a move."""
    throttled = snapshot.usage.throttled(pod.uid).fresh
    if throttled is None or throttled < THROTTLED:
        return ""
    return f"; it runs into its own CPU limit in {throttled:.0%} of the time: raise the limit"
