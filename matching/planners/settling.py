"""From the placement a planner would like to the one it may ask for: within the budget, and not worse than nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from matching.arrays import NOWHERE, TOLERANCE, Floats, Ints
from matching.case import Case
from matching.objective import unplaced
from matching.outcome import Choice, Outcome
from matching.plan import Cause
from matching.planners.budget import budget_note, movers, stays_for_now, within_budget
from matching.planners.node_loads import NodeLoads
from matching.planners.placing import LeastLoaded, Placed, heaviest_first, place_in_turn
from matching.planners.steepest import steepest
from matching.possible import keep_possible
from matching.reasons.wording import NO_ROOM, NOBODY_MOVES, NOT_BETTER, percent


@dataclass(frozen=True, slots=True)
class Aim:
    """What a planner wants to be small: a number made of the nodes' loads."""

    loads: NodeLoads
    measure: Callable[[Floats], float]
    name: str
    shown: Callable[[float], str] = percent
    """A node's load in words."""
    valued: Callable[[float], str] = percent
    """The measure in words."""

    def value(self, at: Ints) -> float:
        return self.measure(self.loads.of(at)[self.loads.counted])


@dataclass(frozen=True, slots=True)
class Wish:
    placed: Placed | None
    """None: the planner found no placement in which everybody has a node."""
    why: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    """Per pod that may move: the rules that chose the pod and the node."""
    ranks: Mapping[int, int] = field(default_factory=dict)
    stay: str = "the node it has is the one that the planner chose for it"
    """Why a pod stays, but for those in `stays`."""
    stays: Mapping[int, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def pending_only(case: Case, loads: NodeLoads, at: Ints | None = None) -> Ints:
    """Every pending pod on the least loaded node that takes it, the running ones where they are (or as `at` says)."""
    start = case.arrays.home if at is None else at
    without = np.where(case.arrays.pending, NOWHERE, start)
    waiting = heaviest_first(case, loads.sizes(), case.arrays.pending)
    return place_in_turn(case, waiting.tolist(), without, LeastLoaded.beside(loads, without))


def settle(case: Case, wish: Wish, aim: Aim) -> Outcome:
    """The wish, or as much of it as the budget allows, if that is better than only placing the pending pods."""
    alone = pending_only(case, aim.loads)
    if wish.placed is None:
        return _nothing(case, alone, alone, wish, aim, NO_ROOM)
    wanted = wish.placed.at
    outcome = as_wished(case, wish, aim)
    if not within_budget(case.arrays, wanted):
        kept = steepest(case, wanted, aim.loads)
        outcome = shortened(case, wish, aim, pending_only(case, aim.loads, kept))
    outcome = _possible(case, outcome, wish, aim)
    at = outcome.choice.at
    if unplaced(case.arrays, at) > unplaced(case.arrays, alone):
        return _nothing(case, alone, wanted, wish, aim, "it would leave more pending pods without a node")
    if len(movers(case.arrays, at)) == 0 or not case.problem.options.only_if_better:
        return outcome
    before, after = aim.value(alone), aim.value(at)
    if after < before - TOLERANCE:
        return outcome
    reason = f"{aim.name} would go from {aim.valued(before)} to {aim.valued(after)}"
    return _nothing(case, alone, wanted, wish, aim, reason)


def _possible(case: Case, outcome: Outcome, wish: Wish, aim: Aim) -> Outcome:
    """Without the moves that rules between pods refuse in any order: what is compared is what will be done."""
    if case.arrays.neighbours is None:
        return outcome
    outcome, _ = keep_possible(case, outcome)
    at = outcome.choice.at
    return replace(outcome, reasoning=LoadReasoning(aim, aim.loads.of(at), at, wish))


def as_wished(case: Case, wish: Wish, aim: Aim) -> Outcome:
    """Neither budget nor comparison: for presets that follow a source which has none."""
    placed = wish.placed
    if placed is None:
        alone = pending_only(case, aim.loads)
        return _nothing(case, alone, alone, wish, aim, NO_ROOM)
    choice = Choice(placed.at, case.movable, {}, placed.kept_home)
    reasoning = LoadReasoning(aim, aim.loads.of(placed.at), placed.at, wish)
    return Outcome(choice, choice, Cause.NOT_BY_PREFERENCE, notes=wish.notes, reasoning=reasoning)


def shortened(case: Case, wish: Wish, aim: Aim, at: Ints) -> Outcome:
    """Only what the budget allows of a wish."""
    assert wish.placed is not None
    wanted = wish.placed.at
    return Outcome(
        Choice(at, case.movable, {}),
        Choice(wanted, case.movable, {}, wish.placed.kept_home),
        Cause.BUDGET,
        stays_for_now(case.arrays.options),
        (budget_note(case.arrays, at, wanted), *wish.notes),
        LoadReasoning(aim, aim.loads.of(at), at, wish),
    )


def _nothing(case: Case, alone: Ints, wanted: Ints, wish: Wish, aim: Aim, reason: str) -> Outcome:
    return Outcome(
        Choice(alone, case.movable, {}),
        Choice(wanted, case.movable, {}),
        Cause.NOT_WORTH_IT,
        NOT_BETTER,
        (NOBODY_MOVES, f"plan dropped: {reason}", *wish.notes),
        LoadReasoning(aim, aim.loads.of(alone), alone, wish),
    )


@dataclass(frozen=True, slots=True)
class LoadReasoning:
    """Other nodes are compared by how loaded they would end."""

    aim: Aim
    ends: Floats
    at: Ints
    wish: Wish

    def rank(self, pod: int) -> int:
        return self.wish.ranks.get(pod, 1)

    def why_moved(self, pod: int) -> tuple[str, ...]:
        end = f"it will end at {self.aim.shown(float(self.ends[self.at[pod]]))}"
        return (*self._own_words(pod), end)

    def why_stayed(self, pod: int) -> str:
        return self.wish.stays.get(pod, self.wish.stay)

    def costs(self, pod: int) -> Floats:
        costs = self.ends + self.aim.loads.added_by(pod)
        costs[self.at[pod]] = self.ends[self.at[pod]]
        return costs

    def worded(self, cost: float) -> str:
        return f"would end at {self.aim.shown(cost)}"

    def _own_words(self, pod: int) -> tuple[str, ...]:
        """A pending pod that the budget or the comparison sent elsewhere has others than those of the wish."""
        placed = self.wish.placed
        if placed is not None and placed.at[pod] == self.at[pod] and pod in self.wish.why:
            return self.wish.why[pod]
        return ("pending: goes to the least loaded node that takes it",)
