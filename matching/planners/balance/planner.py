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
from matching.planners.balance.descent import Terms
from matching.planners.balance.gate import Gate, Reach
from matching.planners.balance.noise import errors_to_pass, sigma_of
from matching.planners.balance.reasons import BalanceReasoning
from matching.planners.balance.search import Search
from matching.planners.budget import budget_words, movers
from matching.planners.node_loads import axis_weights, check_weights
from matching.problem import Problem
from matching.reasons.wording import percent, plural
from matching.writing import write_plan


@dataclass(frozen=True, slots=True)
class BalancePlanner:
    weights: Mapping[str, float] = field(default_factory=dict)
    """Axes to balance; none named means all of them alike."""
    confidence: float = 0.95
    """How sure a move's gain must be, over all nodes looked at; 0 acts on every gain above the price."""
    noise: float | None = None
    """Standard deviation of a pod's usage as a share of it. None: a third of the way from its usage to its peak."""
    outage: float = 1.7
    """Seconds that a pod cannot be reached while it moves (measured for single replicas by KSE)."""
    horizon: float = 300.0
    """Seconds for which a plan is expected to hold."""

    name: ClassVar[str] = "balance"
    waives: ClassVar[frozenset[Promise]] = frozenset()

    def __post_init__(self) -> None:
        if self.weights:
            check_weights(self.weights)
        if not 0 <= self.confidence < 1:
            raise ParameterError("confidence", f"is {self.confidence:g}; it must be at least 0 and below 1")
        for name, value in (("noise", self.noise or 0.0), ("outage", self.outage)):
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
        board = Board(case, reach.counted(), weights, sigma_of(arrays, self.noise))
        gate, terms = Gate(board, reach), self._terms(board)
        search = Search(board, gate, terms)
        search.place(_pending(arrays))
        before, load = board.deviation(), board.load.copy()
        search.run()
        choice = Choice(board.at, case.movable, {})
        reasoning = BalanceReasoning(board, gate, terms, load)
        return Outcome(choice, choice, Cause.NOT_BY_PREFERENCE, "", _notes(board, before), reasoning)

    def _terms(self, board: Board) -> Terms:
        """While a pod moves, its load is lost for a part of the time that the plan holds. That is priced as if the
        load were displaced by a whole node for that part, so a move pays when the two nodes still differ by it."""
        home = board.case.arrays.home
        running = np.flatnonzero(home != NOWHERE)
        share = np.zeros(len(home))
        share[running] = (board.amount[:, running] * board.per[:, home[running]]).max(axis=0)
        errors = errors_to_pass(self.confidence, board.number)
        return Terms(2 * self.outage / self.horizon * share, np.where(home != NOWHERE, errors, 0.0))


def _pending(arrays: Arrays) -> Ints:
    """By priority, then the largest first."""
    pods = np.flatnonzero(arrays.pending)
    size = arrays.usage[:, pods].max(axis=0, initial=0.0)
    priority = np.array([arrays.pods[pod].priority for pod in pods.tolist()], dtype=np.int64)
    return pods[np.lexsort((-size, -priority))]


def _notes(board: Board, before: float) -> tuple[str, ...]:
    moved = len(movers(board.case.arrays, board.at))
    first = f"standard deviation of the node loads: {percent(before)} before, {percent(board.deviation())} after"
    if not moved:
        return "no running pod is moved: no gain is above its price and the noise of the measurements", first
    budget = budget_words(board.case.problem.options)
    return (first, f"{budget}: {plural(moved, 'move')} found within it") if budget else (first,)
