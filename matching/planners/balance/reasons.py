"""Why `balance` moved a pod or left it: what the nodes carry, and what the move earns beside noise and price."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from matching.arrays import NOWHERE, Arrays, Floats, Ints
from matching.planners.balance.board import Board
from matching.planners.balance.gate import Gate
from matching.planners.balance.terms import Terms
from matching.reasons.wording import PENDING, percent, shares


@dataclass(frozen=True, slots=True)
class BalanceReasoning:
    """Costs are changes of the objective from where the plan ends; they are told in squared per cent."""

    board: Board
    gate: Gate
    terms: Terms
    before: Floats
    """(axes, nodes): measured loads with only the pending pods placed."""
    after: Floats
    """Measured loads with the plan."""

    def rank(self, pod: int) -> int:
        costs = np.where(self.gate.possible(np.array([pod]), self._every)[0], self.costs(pod), np.inf)
        return 1 + int((costs < 0).sum())

    def why_moved(self, pod: int) -> tuple[str, ...]:
        arrays, target = self._arrays, int(self.board.at[pod])
        end = f"{arrays.nodes[target].name} goes from {self._at(self.before, target)} to"
        there = f"{end} {self._at(self.after, target)}"
        home = int(arrays.home[pod])
        if home == NOWHERE:
            return PENDING, f"the loads end most even with it there: {there}"
        who = f"evens out {arrays.nodes[home].name}, at {self._at(self.before, home)} (mean {self._mean()})"
        return who, there, self._earns(pod, home)

    def why_stayed(self, pod: int) -> str:
        if not (self.after[:, self._arrays.home[pod]] > self._means()).any():
            return "its node is not loaded above the mean"
        return "no move of it is sure to earn more than its price and the noise of the measurements"

    def costs(self, pod: int) -> Floats:
        changes: Floats = self.board.changes(np.array([pod]), self._every)[0]
        changes[self.board.at[pod]] = 0.0
        return changes

    def worded(self, cost: float) -> str:
        return f"would be {abs(cost) * 1e4:.3g} %² {'less' if cost > 0 else 'more'} even"

    def _earns(self, pod: int, home: int) -> str:
        """Against the same plan without this move."""
        gain = float(self.board.changes(np.array([pod]), np.array([[home]]))[0, 0]) * 1e4
        doubt = float(self.terms.doubt[home] + self.terms.doubt[self.board.at[pod]]) * 1e4
        return f"is expected to earn {gain:.3g} %²: price {self.terms.price[pod] * 1e4:.2g}, doubt {doubt:.2g}"

    def _at(self, load: Floats, node: int) -> str:
        return shares(self._arrays.axes, load[:, node].tolist())

    def _mean(self) -> str:
        return ", ".join(percent(share) for share in self._means().tolist())

    def _means(self) -> Floats:
        means: Floats = self.after.sum(axis=1) / self.board.number
        return means

    @property
    def _every(self) -> Ints:
        return np.arange(len(self.board.counted))[None, :]

    @property
    def _arrays(self) -> Arrays:
        return self.board.case.arrays
