"""From the placement that a load-balancing planner would like to the one it plans: within the budget, and not worse
than doing nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from matching.array_types import NOWHERE, Floats, Ints, Mask
from matching.model.ledger import Ledger
from matching.plan import BlockingCause
from matching.planning.budget import Budget, budget_note, movers, stays_for_now, within_budget
from matching.planning.executable import executable
from matching.planning.node_loads import NodeLoads
from matching.planning.objective import unplaced
from matching.planning.outcome import Choice, Outcome
from matching.planning.placement import LeastLoaded, Placed, heaviest_first, place_in_turn
from matching.planning.prepared import PreparedProblem
from matching.planning.reasons.wording import NO_ROOM, NOBODY_MOVES, NOT_BETTER, percent
from matching.problem import TOLERANCE


@dataclass(frozen=True, slots=True)
class LoadObjective:
    """What a planner minimises: a function of the node loads."""

    loads: NodeLoads
    measure: Callable[[Floats], float]
    name: str
    shown: Callable[[float], str] = percent
    """A node's load as text."""
    valued: Callable[[float], str] = percent
    """The value as text."""

    def value(self, at: Ints) -> float:
        return self.measure(self.loads.of(at)[self.loads.counted])


@dataclass(frozen=True, slots=True)
class Draft:
    """The placement that a planner would like, and its reasons."""

    placed: Placed | None
    """None: the planner found no placement in which every running pod has a node."""
    why: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    """Per pod that may move: the rules that chose the pod and the node."""
    ranks: Mapping[int, int] = field(default_factory=dict)
    stay: str = "the node it has is the one that the planner chose for it"
    """Why a pod stays, unless `stays` has a reason of its own."""
    stays: Mapping[int, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def pending_only(prepared: PreparedProblem, loads: NodeLoads, at: Ints | None = None) -> Ints:
    """Every pending pod on the least loaded node that takes it, the running ones as in `at` (or where they are)."""
    start = prepared.arrays.current if at is None else at
    without = np.where(prepared.arrays.pending, NOWHERE, start)
    waiting = heaviest_first(prepared, loads.sizes(), prepared.arrays.pending)
    return place_in_turn(prepared, waiting.tolist(), without, LeastLoaded.starting_from(loads, without))


def limited_outcome(prepared: PreparedProblem, draft: Draft, objective: LoadObjective) -> Outcome:
    """The draft, or as much of it as the budget allows, if that is better than only placing the pending pods."""
    alone = pending_only(prepared, objective.loads)
    if draft.placed is None:
        return _dropped(prepared, alone, alone, draft, objective, NO_ROOM)
    wanted = draft.placed.at
    outcome = _as_drafted(prepared, draft.placed, draft, objective)
    if not within_budget(prepared.arrays, wanted):
        kept = best_moves_within_budget(prepared, wanted, objective.loads)
        outcome = cut_outcome(prepared, draft, objective, pending_only(prepared, objective.loads, kept))
    outcome = replace(outcome, worth=lambda at: (unplaced(prepared.arrays, at), objective.value(at)))
    outcome = _executable(prepared, outcome, draft, objective)
    at = outcome.choice.at
    if unplaced(prepared.arrays, at) > unplaced(prepared.arrays, alone):
        return _dropped(prepared, alone, wanted, draft, objective, "it would leave more pending pods without a node")
    if len(movers(prepared.arrays, at)) == 0 or not prepared.problem.options.only_if_better:
        return outcome
    before, after = objective.value(alone), objective.value(at)
    if after < before - TOLERANCE:
        return outcome
    reason = f"{objective.name} would go from {objective.valued(before)} to {objective.valued(after)}"
    return _dropped(prepared, alone, wanted, draft, objective, reason)


def _executable(prepared: PreparedProblem, outcome: Outcome, draft: Draft, objective: LoadObjective) -> Outcome:
    """With the moves that can be carried out, so that comparison and reasons are about these."""
    outcome = executable(prepared, outcome)
    at = outcome.choice.at
    return replace(outcome, reasons=LoadReasons(objective, objective.loads.of(at), at, draft))


def unlimited_outcome(prepared: PreparedProblem, draft: Draft, objective: LoadObjective) -> Outcome:
    """Without budget and comparison: for planners that follow a source which has neither."""
    if draft.placed is None:
        alone = pending_only(prepared, objective.loads)
        return _dropped(prepared, alone, alone, draft, objective, NO_ROOM)
    return _executable(prepared, _as_drafted(prepared, draft.placed, draft, objective), draft, objective)


def _as_drafted(prepared: PreparedProblem, placed: Placed, draft: Draft, objective: LoadObjective) -> Outcome:
    choice = Choice(placed.at, prepared.movable, {}, placed.kept_on_node)
    reasons = LoadReasons(objective, objective.loads.of(placed.at), placed.at, draft)
    return Outcome(choice, choice, BlockingCause.NOT_BY_PREFERENCE, notes=draft.notes, reasons=reasons)


def cut_outcome(prepared: PreparedProblem, draft: Draft, objective: LoadObjective, at: Ints) -> Outcome:
    """The part of the draft that the budget allows."""
    assert draft.placed is not None
    wanted = draft.placed.at
    return Outcome(
        Choice(at, prepared.movable, {}),
        Choice(wanted, prepared.movable, {}, draft.placed.kept_on_node),
        BlockingCause.BUDGET,
        stays_for_now(prepared.arrays.options),
        (budget_note(prepared.arrays, at, wanted), *draft.notes),
        LoadReasons(objective, objective.loads.of(at), at, draft),
    )


def _dropped(
    prepared: PreparedProblem, alone: Ints, wanted: Ints, draft: Draft, objective: LoadObjective, reason: str
) -> Outcome:
    return Outcome(
        Choice(alone, prepared.movable, {}),
        Choice(wanted, prepared.movable, {}),
        BlockingCause.NOT_WORTH_IT,
        NOT_BETTER,
        (NOBODY_MOVES, f"plan dropped: {reason}", *draft.notes),
        LoadReasons(objective, objective.loads.of(alone), alone, draft),
    )


@dataclass(frozen=True, slots=True)
class LoadReasons:
    """Other nodes are compared by how loaded they would end."""

    objective: LoadObjective
    ends: Floats
    at: Ints
    draft: Draft

    def rank(self, pod: int) -> int:
        return self.draft.ranks.get(pod, 1)

    def why_moved(self, pod: int) -> tuple[str, ...]:
        end = f"it will end at {self.objective.shown(float(self.ends[self.at[pod]]))}"
        return (*self._own_reasons(pod), end)

    def why_stayed(self, pods: Ints) -> Sequence[str]:
        return [self.draft.stays.get(pod, self.draft.stay) for pod in pods.tolist()]

    def costs(self, pod: int) -> Floats:
        costs = self.ends + self.objective.loads.added_by(pod)
        costs[self.at[pod]] = self.ends[self.at[pod]]
        return costs

    def describe_cost(self, cost: float) -> str:
        return f"would end at {self.objective.shown(cost)}"

    def _own_reasons(self, pod: int) -> tuple[str, ...]:
        """A pending pod that the budget or the comparison sent elsewhere needs another reason than that of the
        draft."""
        placed = self.draft.placed
        if placed is not None and placed.at[pod] == self.at[pod] and pod in self.draft.why:
            return self.draft.why[pod]
        return ("pending: goes to the least loaded node that takes it",)


def best_moves_within_budget(prepared: PreparedProblem, wanted: Ints, loads: NodeLoads) -> Ints:
    """Steepest descent: again and again the wanted move that lowers the variance of the loads most. A move is kept when
    the budget allows it, when it fits with those before it done, and when it lowers the variance. All other pods are on
    their current node. Ends: moves that did not fit are tried again only after another was kept."""
    arrays = prepared.arrays
    at = arrays.current.copy()
    ledger, budget = Ledger(arrays, at), Budget(arrays)
    pods = movers(arrays, wanted)
    moves = _MoveGains(pods, arrays.current[pods], wanted[pods], loads, loads.of(at))
    waiting = budget.may_leave(pods) & budget.may_enter()[wanted[pods]]
    while (best := moves.best(waiting)) is not None:
        pod, target = int(pods[best]), int(wanted[pods[best]])
        waiting[best] = False
        if not ledger.fits_on(pod, target):
            continue
        ledger.take(pod, int(arrays.current[pod]))
        ledger.put(pod, target)
        budget.spend(pod, target)
        at[pod] = target
        moves.apply(best)
        waiting = (at[pods] != wanted[pods]) & budget.may_leave(pods) & budget.may_enter()[wanted[pods]]
    return at


class _MoveGains:
    """How much each wanted move would lower the sum of the squared deviations from the mean."""

    def __init__(self, pods: Ints, source: Ints, target: Ints, loads: NodeLoads, now: Floats) -> None:
        counted = loads.counted
        self._source, self._target, self._now = source, target, now * counted
        self._nodes = max(1, int(counted.sum()))
        self._leaves = loads.added_at(pods, source) * counted[source]
        self._comes = loads.added_at(pods, target) * counted[target]

    def best(self, among: Mask) -> int | None:
        """The move with the largest gain, ties by name; None when no move gains anything."""
        if not among.any():
            return None
        gains = np.where(among, self._gains().round(12), -np.inf)
        best = int(gains.argmax())
        return best if gains[best] > TOLERANCE**2 else None

    def apply(self, move: int) -> None:
        self._now[self._source[move]] -= self._leaves[move]
        self._now[self._target[move]] += self._comes[move]

    def _gains(self) -> Floats:
        here, there = self._now[self._source], self._now[self._target]
        total = self._now.sum()
        squares = (here - self._leaves) ** 2 - here**2 + (there + self._comes) ** 2 - there**2
        shift = ((total - self._leaves + self._comes) ** 2 - total**2) / self._nodes
        gains: Floats = shift - squares
        return gains
