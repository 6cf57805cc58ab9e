"""What cannot be judged, said in the problem's own terms: who may not move, and where no running pod may go."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from matching.problem import Node, Pod, Problem


def judged(problem: Problem, axes: Collection[str]) -> Problem:
    """For a planner that looks at those axes. Pods without a node stay free: somebody has to place them."""
    if not any(thing.unknown for things in (problem.pods, problem.nodes) for thing in things):
        return problem
    return replace(
        problem,
        pods=tuple(_pod(pod, axes) for pod in problem.pods),
        nodes=tuple(_node(node, axes) for node in problem.nodes),
    )


def _pod(pod: Pod, axes: Collection[str]) -> Pod:
    missing = [axis for axis in pod.unknown if axis in axes]
    if not missing or pod.fixed or pod.node is None:
        return pod
    return replace(pod, fixed=f"cannot be judged: what it needs of {', '.join(missing)} is not known")


def _node(node: Node, axes: Collection[str]) -> Node:
    return replace(node, measured=False) if any(axis in axes for axis in node.unknown) else node
