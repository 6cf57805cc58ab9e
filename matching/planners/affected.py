"""The scope `affected`: the fewest moves that make the unhappy pods happy.

Where all placements can be looked at (`all_placements`) the answer is exact: as many unhappy pods as possible are made
happy, with the fewest moves, of these with the fewest moves of happy pods, and rather in a chain than by exchanges. On
larger clusters `making_room` searches. Pending pods are placed first and stay out of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from matching.arrays import NOWHERE, Floats, Ints, movable
from matching.case import Case
from matching.ledger import Ledger
from matching.measures import measure
from matching.objective import is_better, score
from matching.outcome import Choice, Outcome
from matching.plan import Cause, Measures
from matching.planners.all_placements import Placements, all_placements
from matching.planners.budget import budget_words, within_budget
from matching.planners.making_room import make_room
from matching.planners.wellbeing import Wellbeing
from matching.possible import keep_possible, order_of
from matching.preferences import DECIMALS
from matching.problem import Scope
from matching.reasons.obstacles import some
from matching.reasons.wording import PENDING, percent, plural, unhappy_on

MOST_PLACEMENTS = 1 << 14
"""About seven pods that may use four nodes, or eight that may use three."""


def fewest_moves(case: Case, alone: Choice) -> Outcome:
    """`alone` has the pending pods placed and everybody else at home."""
    wellbeing = Wellbeing(case.arrays, alone.at)
    at = _exact(case, wellbeing)
    if at is None:
        at = _possible(case, alone, make_room(case, wellbeing))
    left = _left_unhappy(case, wellbeing, at)
    choice = Choice(at, alone.chose | (at != alone.at), alone.headroom)
    notes = tuple(_notes(case, wellbeing, left))
    before, after = (measure(case.arrays, each) for each in (case.arrays.home, at))
    reasoning = _Reasons(case, at, frozenset(left), before, after)
    return Outcome(choice, choice, Cause.FEWEST_MOVES, notes=notes, reasoning=reasoning)


def _exact(case: Case, wellbeing: Wellbeing) -> Ints | None:
    free = movable(case.arrays, Scope.CLUSTER) & (case.arrays.home != NOWHERE)
    placements = all_placements(case, free, wellbeing.start, MOST_PLACEMENTS)
    if placements is None:
        return None
    for at in _best_first(case, wellbeing, placements):
        if within_budget(case.arrays, at) and not order_of(case, at).refused:
            return at
    return wellbeing.start


def _best_first(case: Case, wellbeing: Wellbeing, placements: Placements) -> Iterator[Ints]:
    """Those at nobody's expense that make anybody happy."""
    unharmed = wellbeing.at_nobodys_expense(placements.at, placements.loads)
    at, loads = placements.at[unharmed], placements.loads[:, unharmed]
    happy = wellbeing.made_happy(at, loads).sum(axis=1)
    moved = at != wellbeing.start
    of_happy = (moved & ~case.arrays.unhappy).sum(axis=1)
    overload = wellbeing.overload(loads).round(DECIMALS)
    order = np.lexsort((overload, _waiting(at, wellbeing.start), of_happy, moved.sum(axis=1), -happy))
    yield from at[order[happy[order] > 0]]


def _waiting(at: Ints, start: Ints) -> Ints:
    """Of each placement: the moves to nodes that another one leaves. A chain has fewer of them than an exchange."""
    rows, pods = np.nonzero(at != start)
    left = np.zeros((len(at), int(max(start.max(initial=0), at.max(initial=0))) + 1), dtype=bool)
    left[rows, start[pods]] = True
    return np.bincount(rows, weights=left[rows, at[rows, pods]], minlength=len(at)).astype(np.int64)


def _possible(case: Case, alone: Choice, at: Ints) -> Ints:
    """Without what rules between pods refuse in any order, if anything good is left then."""
    outcome, _ = keep_possible(case, Outcome(Choice(at, alone.chose, {}), alone))
    kept = outcome.choice.at
    before, after = score(case.arrays, alone.at), score(case.arrays, kept)
    return kept if is_better(before, after, case.problem.options.relief) else alone.at


def _left_unhappy(case: Case, wellbeing: Wellbeing, at: Ints) -> list[int]:
    happy = wellbeing.made_happy(at[None], Ledger(case.arrays, at).load[:, None, :])[0]
    left: list[int] = wellbeing.unhappy[~happy].tolist()
    return left


def _notes(case: Case, wellbeing: Wellbeing, left: list[int]) -> Iterator[str]:
    number = len(wellbeing.unhappy)
    if not number:
        yield "nobody is unhappy: only pending pods are placed"
    elif left:
        budget = budget_words(case.problem.options)
        within = f" within the {budget}" if budget else ""
        names = some(case.arrays.pods[pod].key for pod in left)
        yield f"for {len(left)} of {plural(number, 'unhappy pod')} no move that helps was found{within}: {names}"


@dataclass(frozen=True, slots=True)
class _Reasons:
    """Other nodes are compared by how loaded they would end."""

    case: Case
    at: Ints
    left: frozenset[int]
    before: Measures
    after: Measures

    def rank(self, pod: int) -> int:
        costs = self.costs(pod)
        allowed = self.case.candidates.of(pod)
        return int((costs[allowed] < costs[self.at[pod]]).sum()) + 1

    def why_moved(self, pod: int) -> tuple[str, ...]:
        target = self.case.arrays.nodes[self.at[pod]].name
        return self._why(pod), f"{target} will end at {percent(self.after.node_load[target])} at peak"

    def why_stayed(self, pod: int) -> str:
        if pod in self.left:
            return "unhappy, but nothing was found that would help it at nobody's expense"
        if self.case.arrays.unhappy[pod]:
            return "unhappy, but those who leave relieve its node enough"
        return "happy, and it need not make room"

    def costs(self, pod: int) -> Floats:
        elsewhere = self.at.copy()
        elsewhere[pod] = NOWHERE
        costs: Floats = Ledger(self.case.arrays, elsewhere).shares_with(pod).max(axis=0, initial=0.0)
        return costs

    def worded(self, cost: float) -> str:
        return f"would end at {percent(cost)} at peak"

    def _why(self, pod: int) -> str:
        arrays, home = self.case.arrays, int(self.case.arrays.home[pod])
        if home == NOWHERE:
            return PENDING
        name = arrays.nodes[home].name
        if arrays.unhappy[pod]:
            return unhappy_on(name, self.before.node_load[name])
        comers = np.flatnonzero((self.at == home) & (arrays.home != home) & (arrays.home != NOWHERE)).tolist()
        if comers:
            return f"happy, but makes room on {name} for {some(arrays.pods[comer].key for comer in comers)}"
        stayers = np.flatnonzero((self.at == home) & arrays.unhappy).tolist()
        return f"happy, but its leaving relieves {some(arrays.pods[stayer].key for stayer in stayers)} on {name}"
