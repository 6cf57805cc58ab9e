"""The network axis: how many bits per second a pod needs and a node can carry.

An annotation has precedence over a measurement; without either the value is unknown. The axis is part of a problem
only when the planner uses it; for all others Prometheus is not asked how fast the links of nodes are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from matching.problem import Node as ProblemNode
from matching.problem import Pod as ProblemPod
from matching.problem import Problem
from reactor.cluster.decoding.quantity import parse_quantity
from reactor.settings.model import Planner, Prometheus, Settings
from reactor.state.snapshot import Snapshot

AXIS = "network"
POD_ANNOTATION = "rematch.io/network-bps"
NODE_ANNOTATION = "rematch.io/bandwidth-bps"


def uses_network(planner: Planner) -> bool:
    weights = planner.parameters.get("weights")
    return planner.name == AXIS or (isinstance(weights, Mapping) and AXIS in weights)


def prometheus_queries(settings: Settings) -> Prometheus:
    prometheus = settings.metrics.prometheus
    if uses_network(settings.planner):
        return prometheus
    queries = prometheus.queries.model_copy(update={"node_bandwidth": ""})
    return prometheus.model_copy(update={"queries": queries})


def for_planner(problem: Problem, snapshot: Snapshot, settings: Settings) -> Problem:
    """The problem with the axes that the planner of the settings uses."""
    if not uses_network(settings.planner):
        return problem
    return replace(
        problem,
        axes=(*problem.axes, AXIS),
        pods=tuple(_with_demand(pod, _demand(pod, snapshot)) for pod in problem.pods),
        nodes=tuple(_with_bandwidth(node, _bandwidth(node, snapshot)) for node in problem.nodes),
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


def _with_bandwidth(node: ProblemNode, bandwidth: float | None) -> ProblemNode:
    return replace(
        node,
        allocatable=(*node.allocatable, bandwidth or 0.0),
        background=(*node.background, 0.0) if node.background else (),
        unknown=node.unknown if bandwidth else (*node.unknown, AXIS),
    )


def _demand(planned: ProblemPod, snapshot: Snapshot) -> float | None:
    pod = snapshot.cluster.pods.get(planned.uid)
    if pod is None:
        return None
    annotated = _annotated(pod.annotations, POD_ANNOTATION)
    return annotated if annotated is not None else snapshot.usage.network(pod.uid).fresh


def _bandwidth(planned: ProblemNode, snapshot: Snapshot) -> float | None:
    node = snapshot.cluster.nodes.get(planned.name)
    if node is None:
        return None
    annotated = _annotated(node.annotations, NODE_ANNOTATION)
    return annotated if annotated is not None else snapshot.usage.link_speed(node.name).fresh


def _annotated(annotations: Mapping[str, str], name: str) -> float | None:
    """None also for a value that is not a quantity: then the measurement counts."""
    try:
        amount = parse_quantity(annotations[name])
    except (KeyError, ValueError):
        return None
    return amount if amount >= 0 else None
