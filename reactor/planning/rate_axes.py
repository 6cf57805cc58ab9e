"""The axes network and disk: what a pod sends or writes per second, and what its node can carry.

An annotation has precedence over a measurement; without either the value is unknown. Such an axis is part of a problem
only when the planner uses it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from matching.problem import Node as ProblemNode
from matching.problem import Pod as ProblemPod
from matching.problem import Problem
from reactor.cluster.records import Node, Pod
from reactor.settings.model import Planner, Settings
from reactor.signals.measurements import MISSING, Measurement
from reactor.signals.usage import UsageView
from reactor.state.network_use import stated, stated_bandwidth, stated_demand
from reactor.state.snapshot import Needs, Snapshot

DISK_POD_ANNOTATION = "rematch.io/disk-bytes-per-second"
DISK_NODE_ANNOTATION = "rematch.io/disk-bandwidth-bytes-per-second"


@dataclass(frozen=True, slots=True)
class _RateAxis:
    """Where the amounts of one axis come from."""

    demand: Callable[[Pod], float | None]
    measured: Callable[[UsageView, Pod], Measurement]
    bandwidth: Callable[[Node], float | None]
    speed: Callable[[UsageView, str], Measurement]
    total: Callable[[UsageView, str], Measurement]


def _network_of(usage: UsageView, pod: Pod) -> Measurement:
    """What is measured of a pod in its host's network is the traffic of the node."""
    return MISSING if pod.host_network else usage.network(pod.uid)


_AXES: Mapping[str, _RateAxis] = {
    "network": _RateAxis(
        lambda pod: stated_demand(pod.annotations),
        _network_of,
        stated_bandwidth,
        UsageView.link_speed,
        UsageView.node_network,
    ),
    "disk": _RateAxis(
        lambda pod: stated(pod.annotations, DISK_POD_ANNOTATION),
        lambda usage, pod: usage.disk(pod.uid),
        lambda node: stated(node.annotations, DISK_NODE_ANNOTATION),
        lambda _usage, _node: MISSING,  # nothing measures what a disk could do
        UsageView.node_disk,
    ),
}


def rate_axes(planner: Planner) -> tuple[str, ...]:
    """Those that the planner uses: by its name, its `axis`, its `weights` or its `nodeWeights`."""
    given = planner.parameters
    by_node = given.get("nodeWeights", given.get("node_weights"))
    weights = [given.get("weights"), *(by_node.values() if isinstance(by_node, Mapping) else ())]
    named = {axis for each in weights if isinstance(each, Mapping) for axis in each} | {given.get("axis")}
    if planner.name == "network" and "axis" not in given:
        named.add("network")
    return tuple(axis for axis in _AXES if axis in named)


def for_planner(problem: Problem, snapshot: Snapshot, settings: Settings) -> Problem:
    """The problem with the axes that the planner of the settings uses."""
    for axis in rate_axes(settings.planner):
        source = _AXES[axis]
        problem = replace(
            problem,
            axes=(*problem.axes, axis),
            pods=tuple(_with_demand(pod, axis, _demand(pod, source, snapshot)) for pod in problem.pods),
            nodes=tuple(_with_bandwidth(node, axis, source, snapshot) for node in problem.nodes),
        )
    return problem


def _with_demand(pod: ProblemPod, axis: str, demand: float | None) -> ProblemPod:
    """Nothing is requested on this axis: kube-scheduler does not know it, so it is not a hard constraint."""
    known = 0.0 if demand is None else demand
    return replace(
        pod,
        usage=(*pod.usage, known),
        request=(*pod.request, 0.0),
        peak=(*pod.peak, known),
        mean=(*pod.mean, known) if pod.mean else (),
        unknown=pod.unknown if demand is not None else (*pod.unknown, axis),
    )


def _with_bandwidth(node: ProblemNode, axis: str, source: _RateAxis, snapshot: Snapshot) -> ProblemNode:
    bandwidth, own = _bandwidth(node, source, snapshot), _own_rate(node, source, snapshot)
    nothing = (0.0,) * len(node.allocatable)
    return replace(
        node,
        allocatable=(*node.allocatable, bandwidth or 0.0),
        background=(*(node.background or nothing), own or 0.0),
        unknown=node.unknown if bandwidth and own is not None else (*node.unknown, axis),
    )


def _demand(planned: ProblemPod, source: _RateAxis, snapshot: Snapshot) -> float | None:
    pod = snapshot.cluster.pods.get(planned.uid)
    if pod is None:
        return None
    given = source.demand(pod)
    return given if given is not None else source.measured(snapshot.usage, pod).fresh


def _bandwidth(planned: ProblemNode, source: _RateAxis, snapshot: Snapshot) -> float | None:
    node = snapshot.cluster.nodes.get(planned.name)
    if node is None:
        return None
    given = source.bandwidth(node)
    return given if given is not None else source.speed(snapshot.usage, node.name).fresh


def _own_rate(planned: ProblemNode, source: _RateAxis, snapshot: Snapshot) -> float | None:
    """What is measured of the node beyond what is measured of its pods: its own, and that of pods that nobody measures.
    A file has no measurements, and all that it states counts."""
    if snapshot.needs is Needs.REQUESTS:
        return 0.0
    total = source.total(snapshot.usage, planned.name).fresh
    if total is None:
        return None
    pods = snapshot.cluster.pods_on(planned.name)
    return max(0.0, total - sum(source.measured(snapshot.usage, pod).fresh or 0.0 for pod in pods))
