"""How loaded each node is in one number: measured usage over several axes, weighted, background included."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from matching.arrays import NOWHERE, Arrays, Floats, Ints, Mask, sum_by_node
from matching.case import Case
from matching.parameters import ParameterError


@dataclass(frozen=True, slots=True)
class NodeLoads:
    usage: Floats
    """(axes, pods), in shares of the largest node."""
    background: Floats
    factor: Floats
    """(axes, nodes): what one share of an axis adds to the load of a node."""
    counted: Mask
    """Nodes whose load says something about the balance; the others are left out of averages and spreads."""

    def of(self, at: Ints) -> Floats:
        """Of every node, with the pods where `at` says."""
        used = self.background + sum_by_node(self.usage, at, self.factor.shape[1])
        loads: Floats = (used * self.factor).sum(axis=0)
        return loads

    def added_by(self, pod: int) -> Floats:
        """What the pod would add to each node."""
        added: Floats = self.usage[:, pod] @ self.factor
        return added

    def added_at(self, pods: Ints, nodes: Ints) -> Floats:
        """What each of those pods adds to the node beside it."""
        added: Floats = (self.usage[:, pods] * self.factor[:, nodes]).sum(axis=0)
        return added

    def sizes(self) -> Floats:
        """Of the pods, by what they would add to a node of middling size: who is the heaviest."""
        middle: Floats = self.usage.T @ (self.factor.sum(axis=1) / max(1, self.factor.shape[1]))
        return middle.round(12)


def shares_of_room(case: Case, weights: Mapping[str, float]) -> NodeLoads:
    """Each axis as a share of the node's own room, then the weighted mean of the axes."""
    column = axis_weights(case.arrays, weights)
    return weighted_shares(case, np.broadcast_to((column / column.sum())[:, None], case.arrays.allocatable.shape))


def weighted_shares(case: Case, weights: Floats) -> NodeLoads:
    """`weights` by axis and node. Where a node has no room at all the largest node's stands in. Counted are the nodes
    whose capacity is known and that some pod may leave or use: where nobody can go, nothing is out of balance."""
    arrays = case.arrays
    factor = np.divide(weights, arrays.allocatable, out=weights.copy(), where=arrays.allocatable > 0)
    looked_at = {axis for axis, row in zip(arrays.axes, weights, strict=True) if row.any()}
    known = np.array([looked_at.isdisjoint(node.unknown) for node in arrays.nodes], dtype=bool)
    return NodeLoads(arrays.usage, arrays.background, factor, known & _within_reach(case))


def absolute(arrays: Arrays, axis: str) -> NodeLoads:
    """One axis in its own unit, whatever the size of the node."""
    column = axis_weights(arrays, {axis: 1.0}, "metric") * arrays.unit
    ready = np.array([node.ready for node in arrays.nodes], dtype=bool)
    factor = np.broadcast_to(column[:, None], arrays.allocatable.shape).copy()
    return NodeLoads(arrays.usage, arrays.background, factor, ready)


def _within_reach(case: Case) -> Mask:
    """Nodes that a movable pod is on or may go to; pods of one template are asked once."""
    arrays = case.arrays
    reach = np.zeros(len(arrays.nodes), dtype=bool)
    movable = np.flatnonzero(case.movable)
    homes = arrays.home[movable]
    reach[homes[homes != NOWHERE]] = True
    asked = {(id(arrays.pods[pod].rules), arrays.home[pod] != NOWHERE): pod for pod in movable.tolist()}
    for pod in asked.values():
        reach |= case.candidates.of(pod)
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
