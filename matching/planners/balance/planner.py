"""The planner: places pending pods, searches, and writes the plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from matching.array_types import NOWHERE, Floats, Ints, Mask
from matching.model.arrays import Arrays
from matching.parameters import ParameterError
from matching.plan import BlockingCause, Plan, Promise
from matching.planners.balance.move_filter import AllowedNodes, MoveFilter
from matching.planners.balance.noise import expect, sigma_of
from matching.planners.balance.search import BalanceSearch
from matching.planners.balance.state import BalanceState, MoveCosts
from matching.planning.budget import budget_text, movers
from matching.planning.executable import executable
from matching.planning.node_loads import axis_weights, check_weights, mark_unknown
from matching.planning.objective import unplaced
from matching.planning.outcome import Choice, Outcome
from matching.planning.prepared import PreparedProblem, prepare
from matching.planning.reasons.wording import NOBODY_MOVES, NOT_BETTER, PENDING, percent, plural, shares
from matching.planning.write_plan import write_plan
from matching.problem import Problem

_UNKNOWN_SHIFT = 0.25
"""To even out two nodes, half of their difference is moved, and half of it has a quarter of its variance."""


@dataclass(frozen=True, slots=True)
class BalancePlanner:
    weights: Mapping[str, float] = field(default_factory=dict)
    """Axes to balance; empty means all axes with equal weights."""
    confidence: float = 0.95
    """How certain it must be that the loads really differ; 0 trusts every measured difference."""
    noise: float | None = None
    """Standard deviation of a pod's usage as a share of it. None: a third of the way from its usage to its peak."""
    outage: float = 1.7
    """Seconds that a pod cannot be reached while it moves (measured for single replicas by KSE)."""
    horizon: float = 300.0
    """Seconds for which a plan is expected to hold."""
    overload: float = 4.0
    """The weight of squared overload at peak relative to squared spread: peaks above the limit cost requests."""

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
        prepared = prepare(mark_unknown(problem, weights))
        return write_plan(self.name, prepared, self._outcome(prepared, axis_weights(prepared.arrays, weights)))

    def _outcome(self, prepared: PreparedProblem, weights: Floats) -> Outcome:
        arrays = prepared.arrays
        allowed_nodes = AllowedNodes(prepared)
        counted = allowed_nodes.counted()
        each_axis = self.confidence ** (1 / max(1, int(np.count_nonzero(weights))))
        expected = expect(arrays, counted, sigma_of(arrays, self.noise), each_axis)
        state = BalanceState(prepared, counted, weights, expected.usage, self.overload)
        move_filter, costs = MoveFilter(state, allowed_nodes), self._move_costs(state, expected.variance)
        search = BalanceSearch(state, move_filter, costs)
        search.place(_pending(arrays))
        before, start = state.measured(), state.at.copy()
        search.run()
        outcome = _executable(state, costs, start)
        reasons = BalanceReasons(state, move_filter, costs, before, state.measured())
        return replace(outcome, notes=_notes(state, before), reasons=reasons)

    def _move_costs(self, state: BalanceState, variance: Floats) -> MoveCosts:
        """While a pod moves, its load is lost for a part of the time that the plan holds. The price is that of
        displacing the load by a whole node for that part. A move must also gain more than the (squared) uncertainty
        about the load that should be moved."""
        current = state.prepared.arrays.current
        running = np.flatnonzero(current != NOWHERE)
        share = np.zeros(len(current))
        share[running] = (state.amount[:, running] * state.per[:, current[running]]).max(axis=0)
        uncertainty = self.confidence * _UNKNOWN_SHIFT * (state.weights @ variance)
        return MoveCosts(2 * self.outage / self.horizon * share, uncertainty)


def _executable(state: BalanceState, costs: MoveCosts, start: Ints) -> Outcome:
    """What the search found, as far as it can be carried out and gains something. The state is left there."""
    arrays = state.prepared.arrays

    def worth(at: Ints) -> tuple[Any, ...]:
        state.move_to(at)
        moved = movers(arrays, at)
        return unplaced(arrays, at), state.value() + float(costs.cost_at(state, moved, at[moved]).sum())

    def outcome(at: Ints) -> Outcome:
        choice = Choice(at, state.prepared.movable, {})
        return Outcome(choice, choice, BlockingCause.NOT_BY_PREFERENCE, worth=worth)

    found = executable(state.prepared, outcome(state.at.copy()))
    if (found.choice.given_up or found.choice.redirected) and worth(found.choice.at) >= worth(start):
        found = replace(executable(state.prepared, outcome(start)), wanted=found.wanted, stay_reason=NOT_BETTER)
    state.move_to(found.choice.at)
    return found


def _pending(arrays: Arrays) -> Ints:
    """By priority, then the largest first."""
    pods = np.flatnonzero(arrays.pending)
    size = arrays.usage[:, pods].max(axis=0, initial=0.0)
    priority = np.array([arrays.pods[pod].priority for pod in pods.tolist()], dtype=np.int64)
    return pods[np.lexsort((-size, -priority))]


def _notes(state: BalanceState, before: Floats) -> tuple[str, ...]:
    moved = len(movers(state.prepared.arrays, state.at))
    spreads = (percent(state.deviation(load)) for load in (before, state.measured()))
    first = "standard deviation of the node loads: {} before, {} after".format(*spreads)
    if not moved:
        return f"{NOBODY_MOVES}: no gain is above its price and the noise of the measurements", first
    budget = budget_text(state.prepared.problem.options)
    return (first, f"{budget}: {plural(moved, 'move')} found within it") if budget else (first,)


@dataclass(frozen=True, slots=True)
class BalanceReasons:
    """Costs are changes of the objective from the end of the plan, shown in squared percent."""

    state: BalanceState
    move_filter: MoveFilter
    move_costs: MoveCosts
    before: Floats
    """(axes, nodes): measured loads with only the pending pods placed."""
    after: Floats
    """Measured loads with the plan."""

    def rank(self, pod: int) -> int:
        costs = np.where(self.move_filter.possible(np.array([pod]), self._every)[0], self.costs(pod), np.inf)
        return 1 + int((costs < 0).sum())

    def why_moved(self, pod: int) -> tuple[str, ...]:
        arrays, target = self._arrays, int(self.state.at[pod])
        end = f"{arrays.nodes[target].name} goes from {self._at(self.before, target)} to"
        there = f"{end} {self._at(self.after, target)}"
        current = int(arrays.current[pod])
        if current == NOWHERE:
            return PENDING, f"the loads end most even with it there: {there}"
        why = f"evens out {arrays.nodes[current].name}, at {self._at(self.before, current)} (mean {self._mean()})"
        return why, there, self._earns(pod, current)

    def why_stayed(self, pods: Ints) -> Sequence[str]:
        texts = (
            "its node is not loaded above the mean",
            "no move of it is certain to gain more than its price and the noise of the measurements",
        )
        above: Mask = np.any(self.after > self._means()[:, None], axis=0)
        return [texts[on_loaded] for on_loaded in above[self._arrays.current[pods]].tolist()]

    def costs(self, pod: int) -> Floats:
        changes: Floats = self.state.changes(np.array([pod]), self._every)[0]
        changes[self.state.at[pod]] = 0.0
        return changes

    def describe_cost(self, cost: float) -> str:
        return f"would be {abs(cost) * 1e4:.3g} %² {'less' if cost > 0 else 'more'} even"

    def _earns(self, pod: int, current: int) -> str:
        """Against the same plan without this move."""
        gain = float(self.state.changes(np.array([pod]), np.array([[current]]))[0, 0]) * 1e4
        costs, target = self.move_costs, int(self.state.at[pod])
        price, doubt = (
            float(costs.price[pod]) * 1e4,
            float(costs.uncertainty[current] + costs.uncertainty[target]) * 1e4,
        )
        return f"is expected to gain {gain:.3g} %²: price {price:.2g}, uncertainty {doubt:.2g}"

    def _at(self, load: Floats, node: int) -> str:
        return shares(self._arrays.axes, load[:, node].tolist())

    def _mean(self) -> str:
        return ", ".join(percent(share) for share in self._means().tolist())

    def _means(self) -> Floats:
        means: Floats = self.after.sum(axis=1) / self.state.number
        return means

    @property
    def _every(self) -> Ints:
        return np.arange(len(self.state.counted))[None, :]

    @property
    def _arrays(self) -> Arrays:
        return self.state.prepared.arrays
