"""Can the node be the cause of a pod's unhappiness? What is known of its load and its conditions."""

from __future__ import annotations

from dataclasses import dataclass
from operator import itemgetter

from reactor.cluster.records import Node, Pod
from reactor.settings.model import Settings
from reactor.signals.workloads import workload_key
from reactor.state.snapshot import MEASURED, Needs, Snapshot

SAMPLED = 120.0
"""Seconds over which a measurement of CPU may be taken."""


@dataclass(frozen=True, slots=True)
class NodeCause:
    """What speaks for a pod's node as the cause. `known` is False without fresh metrics: then nothing is moved."""

    known: bool
    text: str
    load: float = 0.0
    """Use as a share of allocatable, on the worst axis, with the pod up."""
    broken: bool = False
    """Its conditions say that it is not well, whatever its load."""
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


def node_cause(pod: Pod, snapshot: Snapshot, settings: Settings) -> NodeCause:
    node = snapshot.cluster.nodes.get(pod.node or "")
    if node is None:
        return NodeCause(False, f"its node {pod.node} is not known")
    if not _pod_known(pod, snapshot):
        return NodeCause(False, f"no fresh metrics of {pod.key}")
    if not node.ready:
        return NodeCause(True, f"{node.name} is not Ready", broken=True, pressure=True)
    if node.pressure:
        return NodeCause(True, f"{node.name} reports {', '.join(node.pressure)}", broken=True, pressure=True)
    use = node_use(node, snapshot)
    if use is None:
        return NodeCause(False, f"no fresh metrics of {node.name}")
    axis, share = max(use.items(), key=itemgetter(1))
    crowded = share >= settings.decision.node_pressure
    load = max(share, use["cpu"] + _idle_while_down(pod, node, snapshot))
    return NodeCause(True, f"{node.name} uses {share:.0%} of its {axis}", load, pressure=crowded)


def _idle_while_down(pod: Pod, node: Node, snapshot: Snapshot) -> float:
    """The CPU, as a share, that the measurement lacks because a container of the pod was down meanwhile: killed again
    and again, a pod hides the load that kills it."""
    usage, peak = snapshot.usage.usage(pod.uid), snapshot.usage.peak(pod.uid)
    up = usage.cpu.at - SAMPLED
    down = any(each.restarts and (each.started is None or each.started > up) for each in pod.containers)
    if not down or usage.cpu.fresh is None or peak.cpu is None:
        return 0.0
    return max(0.0, peak.cpu - usage.cpu.fresh) / node.allocatable["cpu"]


def _pod_known(pod: Pod, snapshot: Snapshot) -> bool:
    return snapshot.needs is Needs.REQUESTS or snapshot.usage.usage(pod.uid).known
