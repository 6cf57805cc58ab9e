"""A placement while the planner weighs moves: what each saves, what it costs, and where a pod may go.

The rules that hold whatever is saved: a pod only goes to a node where it is expected to be happy. An unhappy one must
be clearly better off there: on a clearly less loaded node, where it fails half as often. A happy one needs the full
headroom there by whole peaks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from matching.array_types import NOWHERE, Floats, Ints, Mask
from matching.model.ledger import Ledger
from matching.planning.budget import Budget, movers
from matching.planning.expectation import Expectation
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

    def best_move(self, pod: int) -> Weighed | None:
        """Of a pod on its current node."""
        loads = self.failures.loads_with(pod)
        possible = self._targets(pod, loads)
        if not possible.any():
            return None
        saved = self.failures.saved_by(pod, loads) * self.expectation.minutes
        price = self.price(pod)
        target = self._preferred(pod, possible, loads, saved, price)
        return Weighed(pod, target, float(saved[target]), price)

    def _preferred(self, pod: int, possible: Mask, loads: Floats, saved: Floats, price: float) -> int:
        options = self.arrays.options
        if options.preference is Preference.NEAREST:
            roomy = possible & (loads <= 1 - options.headroom + TOLERANCE)
            good = roomy if roomy.any() else possible
        else:
            best = float(saved[possible].max())
            good = possible & (saved >= best - AS_GOOD * price)
            good &= loads <= loads[good].min() + _AS_EMPTY
        if self._matched is None:
            self._matched = MatchedLoads(self.arrays, self.at)
        costs = self._prepared.preferences.costs(pod, self._matched)
        return int(np.where(good, costs, np.inf).argmin())

    def _targets(self, pod: int, loads: Floats) -> Mask:
        """Other nodes that take it by all constraints and the budget, and where it may go. `loads`: with the pod."""
        current = int(self.arrays.current[pod])
        possible = self._prepared.candidates.of(pod) & self._budget.may_enter()
        possible[current] = False
        if not possible.any() or not self._budget.may_leave(np.array([pod]))[0]:
            return np.zeros_like(possible)
        possible &= self._ledger.fits(pod)
        peaks = self._ledger.shares_with(pod).max(axis=0, initial=0.0)
        return possible & self._may_be_there(pod, loads, peaks)

    def _may_be_there(self, pod: int, loads: Floats, peaks: Floats) -> Mask:
        """`loads` and `peaks`: of nodes that have the pod."""
        source, options = int(self.arrays.current[pod]), self.arrays.options
        may = self.expectation.happy(loads)
        if not self.arrays.unhappy[pod]:
            may &= peaks <= 1 - options.headroom + TOLERANCE
            return may
        may &= loads <= self.expectation.load_before[source] - options.relief + TOLERANCE
        may &= self.expectation.likely(loads) <= self.expectation.before[source] / 2
        return may

    def calm_enough(self, node: int, load: float) -> bool:
        """Whether the node may be so loaded while the moves are carried out."""
        return bool(self.expectation.happy(load)) or load <= self.failures.load_of(node) + TOLERANCE

    def ends_well(self, pod: int) -> bool:
        """Whether the rules hold for a pod that has moved, as the placement is now."""
        node = int(self.at[pod])
        peaks = self._ledger.shares_of([node]).max(axis=0, initial=0.0)
        return bool(self._may_be_there(pod, np.array([self.failures.load_of(node)]), peaks)[0])

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
