"""The axes of users' own metrics: what pods use and nodes have of them, as the sources said last."""

from __future__ import annotations

from dataclasses import replace

from matching.problem import Node as ProblemNode
from matching.problem import Pod as ProblemPod
from matching.problem import Problem
from reactor.settings.model import Settings
from reactor.signals.sources import SourceReading
from reactor.state.snapshot import Snapshot


def with_source_axes(problem: Problem, snapshot: Snapshot, settings: Settings) -> Problem:
    """An axis for every source of the settings. Without a fresh reading nothing is known on it: a planner that weighs
    it moves nobody, and for one without weights, which would take unknown for nothing, the axis is left out."""
    weighed = settings.planner.parameters.get("weights")
    for name in settings.metrics.sources.names:
        reading = snapshot.sources.get(name)
        named = isinstance(weighed, dict) and name in weighed
        if reading is not None or named:
            problem = _with_axis(problem, name, reading or SourceReading())
    return problem


def _with_axis(problem: Problem, axis: str, reading: SourceReading) -> Problem:
    largest = max(reading.nodes.values(), default=1.0)
    return replace(
        problem,
        axes=(*problem.axes, axis),
        pods=tuple(_pod(pod, axis, reading.pods.get(pod.uid)) for pod in problem.pods),
        nodes=tuple(_node(node, axis, reading.nodes.get(node.name), largest) for node in problem.nodes),
    )


def _pod(pod: ProblemPod, axis: str, used: float | None) -> ProblemPod:
    """Nothing is requested on this axis: kube-scheduler does not know it."""
    amount = 0.0 if used is None else used
    unknown = used is None and pod.node is not None
    return replace(
        pod,
        usage=(*pod.usage, amount),
        request=(*pod.request, 0.0),
        peak=(*pod.peak, amount),
        mean=(*pod.mean, amount) if pod.mean else (),
        unknown=(*pod.unknown, axis) if unknown else pod.unknown,
        fixed=pod.fixed or (f"unknown needs: {axis}" if unknown else ""),
    )


def _node(node: ProblemNode, axis: str, capacity: float | None, largest: float) -> ProblemNode:
    """One of unknown capacity receives no running pod, and does not count as full: it has that of the largest node."""
    return replace(
        node,
        allocatable=(*node.allocatable, largest if capacity is None else capacity),
        background=(*node.background, 0.0) if node.background else (),
        unknown=node.unknown if capacity is not None else (*node.unknown, axis),
        measured=node.measured and capacity is not None,
    )
