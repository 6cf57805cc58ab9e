"""Can the node be the cause of a pod's unhappiness? What is known of its load and its conditions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

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
    used: float = 0.0
    """Use as a share of allocatable, on the worst axis."""
    load: float = 0.0
    """The same with the pod up."""
    broken: bool = False
    """Its conditions say that it is not well, whatever its load."""
    pressure: bool = False
    """The node itself is short of something, whatever the pod says."""


def node_use(node: Node, snapshot: Snapshot) -> dict[str, float] | None:
    """Use as a share of allocatable, by axis. None when an axis is not freshly measured: unknown is not idle."""
    return node_uses([node], snapshot)[0]


def node_uses(nodes: Sequence[Node], snapshot: Snapshot) -> list[dict[str, float] | None]:
    """`node_use` of very many nodes at once."""
    found = _requested(nodes, snapshot) if snapshot.needs is Needs.REQUESTS else _measured(nodes, snapshot)
    return [_shares(node, used) for node, used in zip(nodes, found.tolist(), strict=True)]


def _shares(node: Node, used: Sequence[float]) -> dict[str, float] | None:
    totals = [node.allocatable.get(axis, 0.0) for axis in MEASURED]
    if any(map(isnan, used)) or min(totals) <= 0:
        return None
    return {axis: amount / total for axis, amount, total in zip(MEASURED, used, totals, strict=True)}


def _measured(nodes: Sequence[Node], snapshot: Snapshot) -> NDArray[np.float64]:
    """A row of cores and bytes per node, NaN where not freshly measured: what its pods use, and its daemons beyond what
    is kept back for them: as much as pods cannot have.

    Pods that are Ready only since the measurement are charged with their peak, or the next pod would follow. What was
    measured of them is in it already: a pod that was restarted, or was not Ready for a while, used the node."""
    used, measured_at = snapshot.usage.of_nodes([node.name for node in nodes])
    pods, at = _unfinished(nodes, snapshot)
    usage = snapshot.usage.needs([pod.uid for pod in pods])[0]
    by_pods = _sums(at, np.where(np.isnan(usage), 0.0, usage), len(nodes))
    kept_back = np.array([[node.kept_back(axis) for axis in MEASURED] for node in nodes]).reshape(used.shape)
    charges = np.zeros_like(used)
    for pod, node in zip(pods, at.tolist(), strict=True):
        if _is_charged(pod, measured_at[node]):
            charges[node] += _charge(pod, snapshot)
    total: NDArray[np.float64] = np.maximum(by_pods, used - kept_back) + charges
    total[np.isnan(used).any(axis=1)] = np.nan
    return total


def _requested(nodes: Sequence[Node], snapshot: Snapshot) -> NDArray[np.float64]:
    pods, at = _unfinished(nodes, snapshot)
    requests = [[pod.requests.get(axis, 0.0) for axis in MEASURED] for pod in pods]
    return _sums(at, np.array(requests).reshape(len(pods), len(MEASURED)), len(nodes))


def _unfinished(nodes: Sequence[Node], snapshot: Snapshot) -> tuple[list[Pod], NDArray[np.intp]]:
    """The pods of these nodes, each with the position of its node."""
    found = [[pod for pod in snapshot.cluster.pods_on(node.name) if not pod.finished] for node in nodes]
    at = np.repeat(np.arange(len(nodes)), [len(pods) for pods in found])
    return [pod for pods in found for pod in pods], at


def _sums(at: NDArray[np.intp], amounts: NDArray[np.float64], nodes: int) -> NDArray[np.float64]:
    """By node, of a row per pod."""
    return np.stack([np.bincount(at, weights=each, minlength=nodes) for each in amounts.T], axis=1)


def _is_charged(pod: Pod, measured_at: float) -> bool:
    return pod.ready_since is not None and pod.ready_since > measured_at


def _charge(pod: Pod, snapshot: Snapshot) -> tuple[float, float]:
    peak, usage = snapshot.usage.workload_peak(workload_key(pod)), snapshot.usage.usage(pod.uid)
    cpu, memory = (pod.requests.get(axis, 0.0) for axis in MEASURED)
    return (
        max(0.0, (cpu if peak.cpu is None else peak.cpu) - (usage.cpu.fresh or 0.0)),
        max(0.0, (memory if peak.memory is None else peak.memory) - (usage.memory.fresh or 0.0)),
    )


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
    verb = "uses" if snapshot.needs is Needs.METRICS else "has requests for"
    return NodeCause(True, f"{node.name} {verb} {share:.0%} of its {axis}", share, load, pressure=crowded)


def text_with_load(cause: NodeCause, counted: float) -> str:
    """`counted` is the load that counts as evidence; it may be above what is measured now."""
    if cause.broken or f"{counted:.0%}" == f"{cause.used:.0%}":
        return cause.text
    why = "the highest lately" if counted > cause.load else "with what the pod uses while it is up"
    return f"{cause.text} now, {counted:.0%} counted ({why})"


def _idle_while_down(pod: Pod, node: Node, snapshot: Snapshot) -> float:
    """The CPU, as a share, that the measurement lacks because a container of the pod was down meanwhile: killed again
    and again, a pod hides the load that kills it."""
    if _is_charged(pod, snapshot.usage.node_usage(node.name).cpu.at):
        return 0.0
    usage, peak = snapshot.usage.usage(pod.uid), snapshot.usage.peak(pod.uid)
    up = usage.cpu.at - SAMPLED
    down = any(each.restarts and (each.started is None or each.started > up) for each in pod.containers)
    if not down or usage.cpu.fresh is None or peak.cpu is None:
        return 0.0
    return max(0.0, peak.cpu - usage.cpu.fresh) / node.allocatable["cpu"]


def _pod_known(pod: Pod, snapshot: Snapshot) -> bool:
    return snapshot.needs is Needs.REQUESTS or snapshot.usage.usage(pod.uid).known
