"""The planner: pending pods first, then the search, then the whole plan against doing nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from matching.arrays import NOWHERE, Arrays, Floats, Ints
from matching.case import Case, open_case
from matching.judging import judged
from matching.outcome import Choice, Outcome
from matching.parameters import ParameterError
from matching.plan import Cause, Plan, Promise
from matching.planners.balance.board import Board
from matching.planners.balance.gate import Gate, Reach
from matching.planners.balance.noise import expect, sigma_of
from matching.planners.balance.reasons import BalanceReasoning
from matching.planners.balance.search import Search
from matching.planners.balance.terms import Terms
from matching.planners.budget import budget_words, movers
from matching.planners.node_loads import axis_weights, check_weights
from matching.problem import Problem
from matching.reasons.wording import NOBODY_MOVES, percent, plural
from matching.writing import write_plan

_UNKNOWN_SHIFT = 0.25
"""To even out two nodes half of their difference is shifted, and half of it has a quarter of its variance."""


@dataclass(frozen=True, slots=True)
class BalancePlanner:
    weights: Mapping[str, float] = field(default_factory=dict)
    """Axes to balance; none named means all of them alike."""
    confidence: float = 0.95
    """How sure it must be that the loads differ in truth; 0 takes all that was measured for it."""
    noise: float | None = None
    """Standard deviation of a pod's usage as a share of it. None: a third of the way from its usage to its peak."""
    outage: float = 1.7
    """Seconds that a pod cannot be reached while it moves (measured for single replicas by KSE)."""
    horizon: float = 300.0
    """Seconds for which a plan is expected to hold."""
    overload: float = 4.0
    """What a squared share of overload at peak weighs against one of spread: peaks beyond the limit cost requests."""

    name: ClassVar[str] = "balance"
    waives: ClassVar[frozenset[Promise]] = frozenset()

    def __post_init__(self) -> None:
        if self.weights:
            check_weights(self.weights)
        if not 0 <= self.confidence < 1:
            raise ParameterError("confidence", f"is {self.confidence:g}; it must be at least 0 and below 1")
        for name, value in (("noise", self.noise or 0.0), ("outage", self.outage), ("overload", self.overload)):
            if value < 0:
                raise ParameterError(name, f"is {value:g}; it must be at least 0")
        if self.horizon <= 0:
            raise ParameterError("horizon", f"is {self.horizon:g}; it must be above 0")

    def plan(self, problem: Problem) -> Plan:
        weights = self.weights or {axis: 1.0 for axis in problem.axes if axis not in problem.hard_only}
        case = open_case(judged(problem, weights))
        return write_plan(self.name, case, self._outcome(case, axis_weights(case.arrays, weights)))

    def _outcome(self, case: Case, weights: Floats) -> Outcome:
        arrays = case.arrays
        reach = Reach(case)
        counted = reach.counted()
        each_axis = self.confidence ** (1 / max(1, int(np.count_nonzero(weights))))
        expected = expect(arrays, counted, sigma_of(arrays, self.noise), each_axis)
        board = Board(case, counted, weights, expected.usage, self.overload)
        gate, terms = Gate(board, reach), self._terms(board, expected.variance)
        search = Search(board, gate, terms)
        search.place(_pending(arrays))
        before = board.measured()
        search.run()
        choice = Choice(board.at, case.movable, {})
        reasoning = BalanceReasoning(board, gate, terms, before, board.measured())
        return Outcome(choice, choice, Cause.NOT_BY_PREFERENCE, "", _notes(board, before), reasoning)

    def _terms(self, board: Board, variance: Floats) -> Terms:
        """While a pod moves, its load is lost for a part of the time that the plan holds. That is priced as if the
        load were displaced by a whole node for that part, so a move pays when the two nodes still differ by it.
        Besides it must earn more than what is not known about the load that should be shifted (squared)."""
        home = board.case.arrays.home
        running = np.flatnonzero(home != NOWHERE)
        share = np.zeros(len(home))
        share[running] = (board.amount[:, running] * board.per[:, home[running]]).max(axis=0)
        doubt = self.confidence * _UNKNOWN_SHIFT * (board.weights @ variance)
        return Terms(2 * self.outage / self.horizon * share, doubt)


def _pending(arrays: Arrays) -> Ints:
    """By priority, then the largest first."""
    pods = np.flatnonzero(arrays.pending)
    size = arrays.usage[:, pods].max(axis=0, initial=0.0)
    priority = np.array([arrays.pods[pod].priority for pod in pods.tolist()], dtype=np.int64)
    return pods[np.lexsort((-size, -priority))]


def _notes(board: Board, before: Floats) -> tuple[str, ...]:
    moved = len(movers(board.case.arrays, board.at))
    spreads = (percent(board.deviation(load)) for load in (before, board.measured()))
    first = "standard deviation of the node loads: {} before, {} after".format(*spreads)
    if not moved:
        return f"{NOBODY_MOVES}: no gain is above its price and the noise of the measurements", first
    budget = budget_words(board.case.problem.options)
    return (first, f"{budget}: {plural(moved, 'move')} found within it") if budget else (first,)
