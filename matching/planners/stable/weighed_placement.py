"""A placement while the planner weighs moves: what each saves, what it costs, and where a pod may go.

The rules that hold whatever is saved: a pod only goes to a node where it is expected to be happy. An unhappy one must
be clearly better off there (`Expectation.relieved`). By whole peaks it must not add overload on any axis but CPU: pods
share CPU when their peaks meet, and are killed when memory runs out. A happy one needs the full headroom there by whole
peaks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from matching.array_types import NOWHERE, Floats, Ints, Mask
from matching.model.ledger import Ledger
from matching.planning.budget import Budget, movers
from matching.planning.expectation import CPU, Expectation
from matching.planning.move_price import MovePrices
from matching.planning.prepared import PreparedProblem
from matching.preferences import MatchedLoads
from matching.problem import TOLERANCE, Preference

AS_GOOD = 0.1
"""Moves whose benefits differ by less than this share of their price are equally good."""

_AS_EMPTY = 0.1
"""Nodes whose loads differ by less than this are equally empty."""


@dataclass(frozen=True, slots=True)
class Weighed:
    """A possible move."""

    pod: int
    target: int
    saved: float
    """Failing pod-minutes."""
    price: float

    @property
    def net(self) -> float:
        return self.saved - self.price


class WeighedPlacement:
    def __init__(self, prepared: PreparedProblem, expectation: Expectation, at: Ints) -> None:
        self._prepared, self.arrays, self.expectation = prepared, prepared.arrays, expectation
        self.at = at.copy()
        self._ledger, self._budget = Ledger(prepared.arrays, at), Budget(prepared.arrays)
        self.failures = expectation.placed(at)
        for pod in movers(self.arrays, at).tolist():
            self._budget.spend(pod, int(at[pod]))
        self._prices = MovePrices(prepared.arrays)
        self._matched: MatchedLoads | None = None

    def price(self, pod: int) -> float:
        """What its move has to save."""
        return self._prices.of(pod) * self.arrays.options.required_ratio

    def budget_is_spent(self) -> bool:
        return self._budget.is_spent()

    def moved(self) -> list[int]:
        moved: list[int] = movers(self.arrays, self.at).tolist()
        return moved

    def worth(self) -> float:
        """Failing pod-minutes and the price of the moves: the lower the better."""
        return self.failures.total() * self.expectation.minutes + sum(map(self.price, self.moved()))

    def is_cured(self, node: int) -> bool:
        return bool(self.expectation.happy(self.failures.load_of(node)))

    def best_moves(self, pods: Sequence[int]) -> list[Weighed | None]:
        """Of pods on their current nodes, each as if it moved alone. All at once: for a few nodes a call of numpy costs
        more than what it works out."""
        which = np.array(pods, dtype=np.int64)
        loads = self.failures.loads_with_each(which)
        possible = self._targets(which, loads)
        found: list[Weighed | None] = [None] * len(pods)
        able = np.flatnonzero(possible.any(axis=1))
        if not len(able):
            return found
        which, loads, possible = which[able], loads[able], possible[able]
        saved = self.failures.saved_by_each(which, loads) * self.expectation.minutes
        prices = [self.price(pod) for pod in which.tolist()]
        targets = self._preferred(which, possible, loads, saved, np.array(prices))
        for row, target in enumerate(targets.tolist()):
            found[able[row]] = Weighed(int(which[row]), target, float(saved[row, target]), prices[row])
        return found

    def _preferred(self, pods: Ints, possible: Mask, loads: Floats, saved: Floats, prices: Floats) -> Ints:
        """One row per pod, as in `_targets`."""
        options = self.arrays.options
        if options.preference is Preference.NEAREST:
            roomy = possible & (loads <= 1 - options.headroom + TOLERANCE)
            good = np.where(roomy.any(axis=1, keepdims=True), roomy, possible)
        else:
            best: Floats = np.where(possible, saved, -np.inf).max(axis=1)
            enough: Floats = best - AS_GOOD * prices
            good = possible & (saved >= enough[:, None])
            good &= loads <= np.where(good, loads, np.inf).min(axis=1)[:, None] + _AS_EMPTY
        if self._matched is None:
            self._matched = MatchedLoads(self.arrays, self.at)
        costs = self._prepared.preferences.costs_each(pods, self._matched)
        preferred: Ints = np.where(good, costs, np.inf).argmin(axis=1)
        return preferred

    def _targets(self, pods: Ints, loads: Floats) -> Mask:
        """One row per pod: other nodes that take it by all constraints and the budget, and where it may go. `loads`:
        with the pod."""
        possible = self._prepared.candidates.rows(pods) & self._budget.may_enter()
        possible[np.arange(len(pods)), self.arrays.current[pods]] = False
        possible[~self._budget.may_leave(pods)] = False
        rows = np.flatnonzero(possible.any(axis=1))
        if len(rows):
            possible[rows] &= self._ledger.fits_each(pods[rows])
            peaks = self._ledger.shares_with_each(pods[rows])
            added = self._overload_added(pods[rows], peaks)
            relieved = self.expectation.relieved(self.arrays.current[pods[rows]], loads[rows])
            highest = peaks.max(axis=0, initial=0.0)
            possible[rows] &= self._may_be_there(pods[rows], loads[rows], highest, relieved & (added <= TOLERANCE))
        return possible

    def _overload_added(self, pods: Ints, peaks: Floats) -> Floats:
        """One row per pod on its current node, if it moved alone. `peaks`: by axis, pod and node."""
        sources = self.arrays.current[pods]
        now = self._excess(self._ledger.shares())
        relieved = now[sources] - self._excess(self._ledger.shares_without_each(pods, sources))
        added: Floats = self._excess(peaks) - now - relieved[:, None]
        return added

    def _excess(self, peaks: Floats) -> Floats:
        """Overload by whole peaks. `peaks`: by axis first."""
        limit = 1 - self.arrays.options.headroom
        excess: Floats = (np.delete(peaks, CPU, axis=0) - limit).clip(min=0.0).sum(axis=0)
        return excess

    def _may_be_there(self, pods: Ints, loads: Floats, peaks: Floats, relieved: Mask) -> Mask:
        """One row per pod. `loads` and `peaks`: of nodes that have the pod. `relieved`: whether an unhappy one would be
        better off there and adds no overload."""
        roomy = peaks <= 1 - self.arrays.options.headroom + TOLERANCE
        may: Mask = self.expectation.happy(loads) & np.where(self.arrays.unhappy[pods][:, None], relieved, roomy)
        return may

    def calm_enough(self, node: int, load: float) -> bool:
        """Whether the node may be so loaded while the moves are carried out."""
        return bool(self.expectation.happy(load)) or load <= self.failures.load_of(node) + TOLERANCE

    def ends_well(self, pod: int) -> bool:
        """Whether the rules hold for a pod that has moved, as the placement is now."""
        node, current = int(self.at[pod]), int(self.arrays.current[pod])
        peaks = self._ledger.shares_of([current, node])
        self._ledger.shift(pod, node, current)
        back = self._ledger.shares_of([current, node])
        self._ledger.shift(pod, current, node)
        added = (self._excess(peaks) - self._excess(back)).sum()
        load = np.array([[self.failures.load_of(node)]])
        relieved = self.expectation.relieved(np.array([current]), load) & (added <= TOLERANCE)
        highest = peaks[:, 1:].max(axis=0, initial=0.0)
        return bool(self._may_be_there(np.array([pod]), load, highest[None], relieved)[0, 0])

    def fits_back(self, pod: int) -> bool:
        """Whether a pod that has moved would find room on its current node."""
        there, current = int(self.at[pod]), int(self.arrays.current[pod])
        self._ledger.take(pod, there)
        fits = self._ledger.fits_on(pod, current)
        self._ledger.put(pod, there)
        return fits

    def arrived(self, node: int) -> list[int]:
        """Running pods that have moved to the node."""
        here = (self.at == node) & (self.arrays.current != node) & (self.arrays.current != NOWHERE)
        arrived: list[int] = np.flatnonzero(here).tolist()
        return arrived

    def receives(self, node: int) -> bool:
        """Whether a pod comes to the node, be it a pending one."""
        return bool(((self.at == node) & (self.arrays.current != node)).any())

    def put(self, pod: int, node: int) -> None:
        before, current = int(self.at[pod]), int(self.arrays.current[pod])
        if before != current:
            self._budget.refund(pod, before)
        self._budget.spend(pod, node)
        self._ledger.shift(pod, before, node)
        self.failures.move(pod, before, node)
        self.at[pod] = node
        self._matched = None

    def put_back(self, pod: int) -> None:
        self.put(pod, int(self.arrays.current[pod]))

    def saved_by(self, pods: list[int]) -> Floats:
        """In minutes, for each of those pods, which have moved: what would be lost if it alone went back."""
        which = np.array(pods, dtype=np.int64)
        saved: Floats = self.failures.saved_by_moves(which, self.at[which]) * self.expectation.minutes
        return saved
