"""The network axis: how many bits per second a pod needs and a node can carry.

An annotation has precedence over a measurement; without either the value is unknown. The axis is part of a problem
only when the planner uses it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from matching.problem import Node as ProblemNode
from matching.problem import Pod as ProblemPod
from matching.problem import Problem
from reactor.settings.model import Planner, Settings
from reactor.state.network_use import stated_bandwidth, stated_demand
from reactor.state.snapshot import Needs, Snapshot

AXIS = "network"


def uses_network(planner: Planner) -> bool:
    weights = planner.parameters.get("weights")
    return planner.name == AXIS or (isinstance(weights, Mapping) and AXIS in weights)


def for_planner(problem: Problem, snapshot: Snapshot, settings: Settings) -> Problem:
    """The problem with the axes that the planner of the settings uses."""
    if not uses_network(settings.planner):
        return problem
    return replace(
        problem,
        axes=(*problem.axes, AXIS),
        pods=tuple(_with_demand(pod, _demand(pod, snapshot)) for pod in problem.pods),
        nodes=tuple(_with_bandwidth(node, snapshot) for node in problem.nodes),
    )


def _with_demand(pod: ProblemPod, demand: float | None) -> ProblemPod:
    """Nothing is requested on this axis: kube-scheduler does not know it, so it is not a hard constraint."""
    known = 0.0 if demand is None else demand
    return replace(
        pod,
        usage=(*pod.usage, known),
        request=(*pod.request, 0.0),
        peak=(*pod.peak, known),
        mean=(*pod.mean, known) if pod.mean else (),
        unknown=pod.unknown if demand is not None else (*pod.unknown, AXIS),
    )


def _with_bandwidth(node: ProblemNode, snapshot: Snapshot) -> ProblemNode:
    bandwidth, own = _bandwidth(node, snapshot), _own_traffic(node, snapshot)
    nothing = (0.0,) * len(node.allocatable)
    return replace(
        node,
        allocatable=(*node.allocatable, bandwidth or 0.0),
        background=(*(node.background or nothing), own or 0.0),
        unknown=node.unknown if bandwidth and own is not None else (*node.unknown, AXIS),
    )


def _demand(planned: ProblemPod, snapshot: Snapshot) -> float | None:
    pod = snapshot.cluster.pods.get(planned.uid)
    if pod is None:
        return None
    stated = stated_demand(pod.annotations)
    return stated if stated is not None or pod.host_network else snapshot.usage.network(pod.uid).fresh


def _bandwidth(planned: ProblemNode, snapshot: Snapshot) -> float | None:
    node = snapshot.cluster.nodes.get(planned.name)
    if node is None:
        return None
    stated = stated_bandwidth(node)
    return stated if stated is not None else snapshot.usage.link_speed(node.name).fresh


def _own_traffic(planned: ProblemNode, snapshot: Snapshot) -> float | None:
    """What goes over the links beyond the measured traffic of pods: that of the node, and of pods that nobody measures.
    A file has no measurements, and all that it states counts."""
    if snapshot.needs is Needs.REQUESTS:
        return 0.0
    total = snapshot.usage.node_network(planned.name).fresh
    if total is None:
        return None
    pods = (pod for pod in snapshot.cluster.pods_on(planned.name) if not pod.host_network)
    return max(0.0, total - sum(snapshot.usage.network(pod.uid).fresh or 0.0 for pod in pods))
