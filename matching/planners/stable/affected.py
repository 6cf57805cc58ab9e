"""The scope `affected`: the fewest moves that make the unhappy pods happy.

Where all placements can be enumerated (`all_placements`), the answer is exact: as many unhappy pods as possible become
happy, with the fewest moves, among these with the fewest moves of happy pods, preferably in a chain rather than by
exchanges, and away from replicas. On larger clusters `affected_search` searches. Pending pods are placed first and do
not take part.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from matching.array_types import NOWHERE, Floats, Ints
from matching.model.arrays import movable
from matching.model.ledger import Ledger
from matching.plan import BlockingCause
from matching.planners.stable.affected_search import HappinessCheck, search_moves
from matching.planners.stable.reasons import RematchReasons
from matching.planners.stable.small_search import Placements, all_placements
from matching.planning.budget import budget_text, within_budget
from matching.planning.executable import executable
from matching.planning.move_order import order_of_placement
from matching.planning.objective import is_better, score
from matching.planning.outcome import Choice, Outcome
from matching.planning.prepared import PreparedProblem
from matching.planning.reasons.obstacles import some
from matching.planning.reasons.wording import plural
from matching.preferences import DECIMALS
from matching.problem import Scope

MOST_PLACEMENTS = 1 << 14
"""About seven pods that may use four nodes, or eight that may use three."""


def fewest_moves(prepared: PreparedProblem, alone: Choice) -> Outcome:
    """`alone` has the pending pods placed and all other pods on their current node."""
    check = HappinessCheck(prepared.arrays, alone.at)
    found = _exact(prepared, alone, check)
    if found is None:
        found = _searched(prepared, alone, check)
    at = found.choice.at
    left = _left_unhappy(prepared, check, at)
    choice = replace(found.choice, chose=alone.chose | (at != alone.at))
    notes = tuple(_notes(prepared, check, left))
    reasons = RematchReasons.of(prepared, choice, left)
    return Outcome(choice, choice, BlockingCause.FEWEST_MOVES, notes=notes, reasons=reasons, order=found.order)


def _exact(prepared: PreparedProblem, alone: Choice, check: HappinessCheck) -> Outcome | None:
    free = movable(prepared.arrays, Scope.CLUSTER) & (prepared.arrays.current != NOWHERE)
    placements = all_placements(prepared, free, check.start, MOST_PLACEMENTS)
    if placements is None:
        return None
    for at in _best_first(prepared, check, placements):
        if within_budget(prepared.arrays, at) and not order_of_placement(prepared, at).stuck:
            return _placed_as(alone, at)
    return _placed_as(alone, check.start)


def _best_first(prepared: PreparedProblem, check: HappinessCheck, placements: Placements) -> Iterator[Ints]:
    """The placements that harm no pod and make at least one happy."""
    unharmed = check.harms_nobody(placements.at, placements.loads)
    at, loads = placements.at[unharmed], placements.loads[:, unharmed]
    happy = check.made_happy(at, loads).sum(axis=1)
    moved = at != check.start
    of_happy = (moved & ~prepared.arrays.unhappy).sum(axis=1)
    overload = check.overload(loads).round(DECIMALS)
    spread = _replica_costs(prepared, check, at)
    order = np.lexsort((overload, spread, _moves_that_wait(at, check.start), of_happy, moved.sum(axis=1), -happy))
    yield from at[order[happy[order] > 0]]


def _replica_costs(prepared: PreparedProblem, check: HappinessCheck, at: Ints) -> Floats:
    """For each placement: what the replicas beside the moved pods cost these."""
    costs, rows, spread = np.zeros(len(at)), np.arange(len(at)), prepared.arrays.default_spread
    if spread is not None:
        for pod in check.unhappy[spread.applies[check.unhappy]].tolist():
            costs += spread.cost(pod, at)[rows, at[:, pod]]
    rounded: Floats = costs.round(DECIMALS)
    return rounded


def _moves_that_wait(at: Ints, start: Ints) -> Ints:
    """For each placement: the moves to nodes that another pod leaves. A chain has fewer of them than an exchange."""
    rows, pods = np.nonzero(at != start)
    left = np.zeros((len(at), int(max(start.max(initial=0), at.max(initial=0))) + 1), dtype=bool)
    left[rows, start[pods]] = True
    return np.bincount(rows, weights=left[rows, at[rows, pods]], minlength=len(at)).astype(np.int64)


def _searched(prepared: PreparedProblem, alone: Choice, check: HappinessCheck) -> Outcome:
    """The moves that the search found and that can be carried out, if these are still better than nothing."""
    arrays = prepared.arrays

    def worth(at: Ints) -> tuple[Any, ...]:
        rows, loads = at[None], Ledger(arrays, at).load[:, None, :]
        harms, happy = not check.harms_nobody(rows, loads)[0], int(check.made_happy(rows, loads).sum())
        return harms, -happy, int((at != check.start).sum())

    found = executable(prepared, replace(_placed_as(alone, search_moves(prepared, check)), worth=worth))
    before, after = score(arrays, alone.at), score(arrays, found.choice.at)
    better = is_better(before, after, prepared.problem.options.relief) and not worth(found.choice.at)[0]
    return found if better else _placed_as(alone, alone.at)


def _placed_as(alone: Choice, at: Ints) -> Outcome:
    choice = Choice(at, alone.chose, alone.headroom)
    return Outcome(choice, choice)


def _left_unhappy(prepared: PreparedProblem, check: HappinessCheck, at: Ints) -> list[int]:
    happy = check.made_happy(at[None], Ledger(prepared.arrays, at).load[:, None, :])[0]
    left: list[int] = check.unhappy[~happy].tolist()
    return left


def _notes(prepared: PreparedProblem, check: HappinessCheck, left: list[int]) -> Iterator[str]:
    number = len(check.unhappy)
    if not number:
        yield "no pod is unhappy: only pending pods are placed"
    elif left:
        budget = budget_text(prepared.problem.options)
        within = f" within the {budget}" if budget else ""
        names = some(prepared.arrays.pods[pod].key for pod in left)
        yield f"for {len(left)} of {plural(number, 'unhappy pod')} no move that helps was found{within}: {names}"
