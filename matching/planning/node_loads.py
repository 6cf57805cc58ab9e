"""The load of each node as one number: measured usage over several axes, weighted, background included."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

import numpy as np

from matching.array_types import NOWHERE, Floats, Ints, Mask
from matching.model.arrays import Arrays, sum_by_node
from matching.parameters import ParameterError
from matching.planning.prepared import PreparedProblem
from matching.problem import Node, Pod, Problem


@dataclass(frozen=True, slots=True)
class NodeLoads:
    usage: Floats
    """(axes, pods), in shares of the largest node."""
    background: Floats
    factor: Floats
    """(axes, nodes): what one share of an axis adds to the load of a node."""
    counted: Mask
    """Nodes that count for the balance; the others are left out of averages and spreads."""

    def of(self, at: Ints) -> Floats:
        """The load of every node, with the pods as in `at`."""
        used = self.background + sum_by_node(self.usage, at, self.factor.shape[1])
        loads: Floats = (used * self.factor).sum(axis=0)
        return loads

    def added_by(self, pod: int) -> Floats:
        """What the pod would add to each node."""
        added: Floats = self.usage[:, pod] @ self.factor
        return added

    def added_at(self, pods: Ints, nodes: Ints) -> Floats:
        """What each of those pods adds to the node at the same position."""
        added: Floats = (self.usage[:, pods] * self.factor[:, nodes]).sum(axis=0)
        return added

    def sizes(self) -> Floats:
        """The size of each pod: what it would add to a node of average size."""
        middle: Floats = self.usage.T @ (self.factor.sum(axis=1) / max(1, self.factor.shape[1]))
        return middle.round(12)


def shares_of_room(prepared: PreparedProblem, weights: Mapping[str, float]) -> NodeLoads:
    """Each axis as a share of the node's own room, then the weighted mean of the axes."""
    column = axis_weights(prepared.arrays, weights)
    return weighted_shares(
        prepared, np.broadcast_to((column / column.sum())[:, None], prepared.arrays.allocatable.shape)
    )


def weighted_shares(prepared: PreparedProblem, weights: Floats) -> NodeLoads:
    """`weights` by axis and node. A node without any room uses that of the largest node. Counted are the nodes with
    known capacity that a movable pod is on or may use: the load of other nodes cannot change."""
    arrays = prepared.arrays
    factor = np.divide(weights, arrays.allocatable, out=weights.copy(), where=arrays.allocatable > 0)
    used_axes = {axis for axis, row in zip(arrays.axes, weights, strict=True) if row.any()}
    known = np.array([used_axes.isdisjoint(node.unknown) for node in arrays.nodes], dtype=bool)
    return NodeLoads(arrays.usage, arrays.background, factor, known & _within_reach(prepared))


def absolute(arrays: Arrays, axis: str) -> NodeLoads:
    """One axis in its own unit, whatever the size of the node."""
    column = axis_weights(arrays, {axis: 1.0}, "metric") * arrays.unit
    ready = np.array([node.ready for node in arrays.nodes], dtype=bool)
    factor = np.broadcast_to(column[:, None], arrays.allocatable.shape).copy()
    return NodeLoads(arrays.usage, arrays.background, factor, ready)


def _within_reach(prepared: PreparedProblem) -> Mask:
    """Nodes that a movable pod is on or may go to; pods of one template are evaluated once."""
    arrays = prepared.arrays
    reach = np.zeros(len(arrays.nodes), dtype=bool)
    movable = np.flatnonzero(prepared.movable)
    current_nodes = arrays.current[movable]
    reach[current_nodes[current_nodes != NOWHERE]] = True
    asked = {(id(arrays.pods[pod].rules), arrays.current[pod] != NOWHERE): pod for pod in movable.tolist()}
    for pod in asked.values():
        reach |= prepared.candidates.of(pod)
    return reach


def axis_weights(arrays: Arrays, weights: Mapping[str, float], parameter: str = "weights") -> Floats:
    """One number per axis; an axis that is not named weighs nothing."""
    for axis in weights:
        if axis not in arrays.axes:
            raise ParameterError(parameter, f"the problem has no axis {axis!r}; its axes are {', '.join(arrays.axes)}")
    return np.array([weights.get(axis, 0.0) for axis in arrays.axes], dtype=np.float64)


def check_weights(weights: Mapping[str, float], parameter: str = "weights") -> None:
    for axis, weight in weights.items():
        if weight < 0:
            raise ParameterError(f"{parameter}.{axis}", f"is {weight:g}; it must be at least 0")
    if not any(weights.values()):
        raise ParameterError(parameter, "weighs no axis; give at least one a weight above 0, such as cpu: 1.0")


def mark_unknown(problem: Problem, axes: Collection[str]) -> Problem:
    """The problem for a planner that uses those axes: running pods with unknown needs are fixed, nodes with unknown
    capacity receive no running pod. Pending pods are still placed."""
    if not any(each.unknown for group in (problem.pods, problem.nodes) for each in group):
        return problem
    return replace(
        problem,
        pods=tuple(_marked_pod(pod, axes) for pod in problem.pods),
        nodes=tuple(_marked_node(node, axes) for node in problem.nodes),
    )


def _marked_pod(pod: Pod, axes: Collection[str]) -> Pod:
    missing = [axis for axis in pod.unknown if axis in axes]
    if not missing or pod.fixed or pod.node is None:
        return pod
    return replace(pod, fixed=f"unknown needs: {', '.join(missing)}")


def _marked_node(node: Node, axes: Collection[str]) -> Node:
    return replace(node, measured=False) if any(axis in axes for axis in node.unknown) else node
