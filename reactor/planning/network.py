"""The network axis: who needs how many bits per second, and how many a node can carry.

An annotation says it, else what was measured; where there is neither it is not known, which the problem says. The
axis is part of a problem only when the planner of the settings looks at it: everybody else is spared the queries.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from matching.problem import Node as Place
from matching.problem import Pod as Guest
from matching.problem import Problem
from reactor.cluster.decoding.quantity import parse_quantity
from reactor.settings.model import Planner, Prometheus, Settings
from reactor.state.snapshot import Snapshot

AXIS = "network"
POD_ANNOTATION = "rematch.io/network-bps"
NODE_ANNOTATION = "rematch.io/bandwidth-bps"


def looks_at_network(planner: Planner) -> bool:
    weights = planner.parameters.get("weights")
    return planner.name == AXIS or (isinstance(weights, Mapping) and AXIS in weights)


def asked_of_prometheus(settings: Settings) -> Prometheus:
    prometheus = settings.metrics.prometheus
    if looks_at_network(settings.planner):
        return prometheus
    queries = prometheus.queries.model_copy(update={"pod_network": "", "node_bandwidth": ""})
    return prometheus.model_copy(update={"queries": queries})


def for_planner(problem: Problem, snapshot: Snapshot, settings: Settings) -> Problem:
    """The problem as the planner of the settings needs it."""
    if not looks_at_network(settings.planner):
        return problem
    return replace(
        problem,
        axes=(*problem.axes, AXIS),
        pods=tuple(_guest(pod, _demand(pod, snapshot)) for pod in problem.pods),
        nodes=tuple(_place(node, _bandwidth(node, snapshot)) for node in problem.nodes),
    )


def _guest(pod: Guest, demand: float | None) -> Guest:
    """Nothing is requested on this axis: kube-scheduler does not know it, so it cannot reject."""
    known = 0.0 if demand is None else demand
    return replace(
        pod,
        usage=(*pod.usage, known),
        request=(*pod.request, 0.0),
        peak=(*pod.peak, known),
        unknown=pod.unknown if demand is not None else (*pod.unknown, AXIS),
    )


def _place(node: Place, bandwidth: float | None) -> Place:
    return replace(
        node,
        allocatable=(*node.allocatable, bandwidth or 0.0),
        background=(*node.background, 0.0) if node.background else (),
        unknown=node.unknown if bandwidth else (*node.unknown, AXIS),
    )


def _demand(guest: Guest, snapshot: Snapshot) -> float | None:
    pod = snapshot.cluster.pods.get(guest.uid)
    if pod is None:
        return None
    said = _said(pod.annotations, POD_ANNOTATION)
    return said if said is not None else snapshot.usage.network(pod.uid).fresh


def _bandwidth(place: Place, snapshot: Snapshot) -> float | None:
    node = snapshot.cluster.nodes.get(place.name)
    if node is None:
        return None
    said = _said(node.annotations, NODE_ANNOTATION)
    return said if said is not None else snapshot.usage.link_speed(node.name).fresh


def _said(annotations: Mapping[str, str], name: str) -> float | None:
    """None also for what is no amount: then the measurement has to do."""
    try:
        amount = parse_quantity(annotations[name])
    except (KeyError, ValueError):
        return None
    return amount if amount >= 0 else None
