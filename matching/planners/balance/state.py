"""The state of the search: where the pods are, the load of each node, and how a change affects the objective.

The objective is a weighted sum over axes of the squared distances of the nodes' loads from their mean (the number of
nodes times the variance), plus `overload` times the squared peak shares above 1 - headroom.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from matching.array_types import NOWHERE, Floats, Ints, Mask
from matching.model.arrays import sum_by_node
from matching.model.ledger import Ledger
from matching.planning.prepared import PreparedProblem


class BalanceState:
    def __init__(
        self, prepared: PreparedProblem, counted: Mask, weights: Floats, amount: Floats, overload: float
    ) -> None:
        """`counted` nodes count for the spread; `amount` is the expected usage of each pod."""
        arrays = prepared.arrays
        self.prepared, self.counted, self.at = prepared, counted, arrays.current.copy()
        self.movable = prepared.movable.copy()
        self.ledger = Ledger(arrays, self.at)
        room = arrays.allocatable
        self.per = np.divide(1.0, room, out=np.zeros_like(room), where=(room > 0) & counted)
        """What one share of the largest node is on each node."""
        self.weights = weights
        self._overload = overload
        self.amount = amount
        self._peak = arrays.peak
        number = len(arrays.nodes)
        self.load = (arrays.background + sum_by_node(self.amount, self.at, number)) * self.per
        self._limit = 1 - arrays.options.headroom
        self.number = max(1, int(counted.sum()))

    @property
    def mean(self) -> Floats:
        mean: Floats = self.load.sum(axis=1) / self.number
        return mean

    @property
    def away(self) -> Floats:
        """(axes, nodes): distance of each load from the mean."""
        away: Floats = np.where(self.counted, self.load - self.mean[:, None], 0.0)
        return away

    def measured(self) -> Floats:
        """(axes, nodes): the loads by measured usage, not by expected usage."""
        arrays = self.prepared.arrays
        used = sum_by_node(arrays.usage, self.at, len(arrays.nodes))
        loads: Floats = (arrays.background + used) * self.per
        return loads

    def deviation(self, load: Floats) -> float:
        """Standard deviation of the loads, over nodes and axes."""
        away = np.where(self.counted, load - load.sum(axis=1, keepdims=True) / self.number, 0.0)
        return float(np.sqrt((self.weights @ away**2).sum() / (self.number * self.weights.sum())))

    def value(self) -> float:
        """The objective, summed again from the placement: the same for the same placement, whatever led to it."""
        arrays, number = self.prepared.arrays, len(self.counted)
        load = (arrays.background + sum_by_node(self.amount, self.at, number)) * self.per
        away = np.where(self.counted, load - load.sum(axis=1, keepdims=True) / self.number, 0.0)
        over = self._over((arrays.background + sum_by_node(self._peak, self.at, number)) * self.per)
        return float((self.weights @ (away**2 + self._overload * over**2)).sum())

    def heat(self) -> Floats:
        """How far each node is above the mean or the limit: where to look first."""
        over = self._over(self.ledger.load * self.per)
        heat: Floats = self.weights @ (self.away.clip(min=0.0) ** 2 + self._overload * over**2)
        return heat

    def sources(self) -> Mask:
        """Nodes with a movable pod."""
        sources = np.zeros(len(self.counted), dtype=bool)
        at = self.at[self.movable]
        sources[at[at != NOWHERE]] = True
        return sources & self.counted

    def changes(self, pods: Ints, targets: Ints) -> Floats:
        """(pods, targets): the change of the objective if the pod went there. `targets` has a row per pod."""
        source = self.at[pods]
        total = np.zeros(np.broadcast_shapes((len(pods), 1), targets.shape))
        for axis, weight in enumerate(self.weights.tolist()):
            if weight:
                per = self.per[axis]
                leaving = np.where(source == NOWHERE, 0.0, per[source])[:, None]
                away = self.load[axis] - self.load[axis].sum() / self.number
                amount, per_target = self.amount[axis, pods][:, None], per[targets]
                won, lost = amount * per_target, amount * leaving
                here, there = away[source][:, None], away[targets]
                change = won * (won + 2 * there) + lost * (lost - 2 * here) - (won - lost) ** 2 / self.number
                total += weight * change
                peaks, peak = self.ledger.load[axis] * per, self._peak[axis, pods][:, None]
                total += (self._overload * weight) * self._more_over(peaks[targets], peak * per_target)
                total += (self._overload * weight) * self._more_over(peaks[source][:, None], -peak * leaving)
        return total

    def swap_changes(self, ours: Ints, theirs: Ints) -> Floats:
        """(ours, theirs): the same if the two exchanged nodes. All of `ours` are on one node, none of `theirs` is."""
        source, target = int(self.at[ours[0]]), self.at[theirs]
        total = np.zeros((len(ours), len(theirs)))
        for axis, weight in enumerate(self.weights.tolist()):
            if weight:
                per = self.per[axis]
                away = self.load[axis] - self.load[axis].sum() / self.number
                moved = self.amount[axis, ours][:, None] - self.amount[axis, theirs]
                won, lost = moved * per[target], moved * per[source]
                change = won * (won + 2 * away[target]) + lost * (lost - 2 * away[source])
                total += weight * (change - (won - lost) ** 2 / self.number)
                peaks = self.ledger.load[axis] * per
                shifted = self._peak[axis, ours][:, None] - self._peak[axis, theirs]
                total += (self._overload * weight) * self._more_over(peaks[target], shifted * per[target])
                total += (self._overload * weight) * self._more_over(peaks[source], -shifted * per[source])
        return total

    def put(self, pod: int, target: int) -> None:
        """Move the pod from its node, if any, to the target."""
        for node, sign in ((int(self.at[pod]), -1), (target, 1)):
            if node != NOWHERE:
                self.load[:, node] += sign * self.amount[:, pod] * self.per[:, node]
                (self.ledger.put if sign > 0 else self.ledger.take)(pod, node)
        self.at[pod] = target

    def move_to(self, at: Ints) -> None:
        """Move all pods to their nodes in `at`."""
        for pod in np.flatnonzero(self.at != at).tolist():
            self.put(pod, int(at[pod]))

    def _more_over(self, share: Floats, added: Floats) -> Floats:
        """How much the square of the overload grows."""
        return self._over(share + added) ** 2 - self._over(share) ** 2

    def _over(self, share: Floats) -> Floats:
        return np.maximum(share - self._limit, 0.0)


LEAST_GAIN = 1e-12
"""Smaller gains are rounding errors."""


@dataclass(frozen=True, slots=True)
class MoveCosts:
    """What a move must gain: its price, and the uncertainty about the two nodes. In units of the objective. Only
    running pods that end on another node have costs."""

    price: Floats
    """Per pod."""
    uncertainty: Floats
    """Per node, for each pod that leaves or enters it."""

    def cost_at(self, state: BalanceState, pods: Ints, at: Ints) -> Floats:
        """Of each pod if it ended there; `at` has a node or a row of nodes per pod."""
        current, price = state.prepared.arrays.current[pods], self.price[pods]
        if at.ndim > 1:
            current, price = current[:, None], price[:, None]
        stays = (current == NOWHERE) | (at == NOWHERE) | (at == current)
        cost: Floats = np.where(stays, 0.0, price + self.uncertainty[current] + self.uncertainty[at])
        return cost

    def total(self, state: BalanceState) -> float:
        """The objective and the costs of all moves: what the search lowers."""
        return state.value() + float(self.cost_at(state, np.arange(len(state.at)), state.at).sum())

    def added_cost(self, state: BalanceState, pods: Ints, targets: Ints) -> Floats:
        """(pods, targets): how much more each pod would cost there than where it is."""
        return self.cost_at(state, pods, targets) - self.cost_at(state, pods, state.at[pods])[:, None]
