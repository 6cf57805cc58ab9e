"""The matching that is expected to benefit most for its price.

First the fewest moves that relieve the nodes in trouble (`relief`). Where unhappy pods are left after that, the stable
matchings of the scope and the search for the fewest moves are tried as well: they find exchanges and chains. Of each
only the moves that pay for themselves are kept (`worthwhile`). What saves most, less the price, becomes the plan.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from matching.array_types import NOWHERE, Ints, Mask
from matching.model.arrays import movable
from matching.plan import BlockingCause
from matching.planners.stable.affected import fewest_moves
from matching.planners.stable.reasons import RematchReasons
from matching.planners.stable.relief import relieve
from matching.planners.stable.serial_choice import choice_for_all
from matching.planners.stable.weighed_placement import WeighedPlacement
from matching.planners.stable.worthwhile import worthwhile
from matching.planning.budget import budget_text, movers, within_budget
from matching.planning.executable import executable
from matching.planning.expectation import Expectation
from matching.planning.objective import unplaced
from matching.planning.outcome import Choice, Outcome, with_placement
from matching.planning.prepared import PreparedProblem
from matching.problem import Scope

_MOST_SEARCHED = 64
"""Unhappy pods for which the search for chains is tried."""

_Worth = tuple[tuple[int, ...], float, int]


def best_benefit(prepared: PreparedProblem, alone: Choice) -> Outcome:
    """`alone` has the pending pods placed and all other pods on their current node. Pods that starve get ample room
    where there is room, else what they are known to need."""
    outcome = _best(prepared, alone, Expectation(prepared.arrays, ample=True))
    if len(movers(prepared.arrays, outcome.choice.at)):
        return outcome
    return _best(prepared, alone, Expectation(prepared.arrays))


def _best(prepared: PreparedProblem, alone: Choice, expectation: Expectation) -> Outcome:
    best, order = _relieved(prepared, expectation, alone.at)
    least = _worth(prepared, best)
    matching = alone
    if _left(prepared, best) or least[0]:
        for choice in _matchings(prepared, alone, expectation):
            placement = WeighedPlacement(prepared, expectation, choice.at)
            found = worthwhile(prepared, placement)
            worth = _worth(prepared, placement)
            if worth < least:
                best, order, least, matching = placement, found, worth, choice
    cause = BlockingCause.BUDGET if best.budget_is_spent() else BlockingCause.NARROWER
    notes = (f"{budget_text(prepared.problem.options)}: it is used up",) if cause is BlockingCause.BUDGET else ()
    choice, reasons = replace(alone, chose=alone.chose | prepared.movable), None
    if (best.at != alone.at).any():
        choice = _chosen(prepared, matching, best.at)
        reasons = RematchReasons.of(prepared, choice, _left(prepared, best))
    return Outcome(
        choice,
        choice,
        cause,
        notes=notes,
        reasons=reasons,
        order=order,
        required_ratio=prepared.problem.options.required_ratio,
        expectation=expectation,
    )


def _chosen(prepared: PreparedProblem, matching: Choice, at: Ints) -> Choice:
    """What is left of a matching, with what it says about the pods that it sends elsewhere or keeps."""
    current = prepared.arrays.current
    redirected = {pod: why for pod, why in matching.redirected.items() if at[pod] == matching.at[pod]}
    given_up = {pod: why for pod, why in matching.given_up.items() if at[pod] == current[pod]}
    chose = prepared.arrays.pending | (at != current)
    return replace(with_placement(matching, at), chose=chose, redirected=redirected, given_up=given_up)


def _relieved(
    prepared: PreparedProblem, expectation: Expectation, at: Ints
) -> tuple[WeighedPlacement, tuple[int, ...]]:
    placement = WeighedPlacement(prepared, expectation, at)
    relieve(placement, _free(prepared), prepared.ranking)
    return placement, worthwhile(prepared, placement)


def _free(prepared: PreparedProblem) -> Mask:
    free: Mask = prepared.movable & (prepared.arrays.current != NOWHERE)
    return free


def _worth(prepared: PreparedProblem, placement: WeighedPlacement) -> _Worth:
    """The smaller the better."""
    return unplaced(prepared.arrays, placement.at), round(placement.worth(), 9), len(placement.moved())


def _left(prepared: PreparedProblem, placement: WeighedPlacement) -> list[int]:
    """Unhappy pods that may move, but stay where they are expected to stay unhappy."""
    arrays = prepared.arrays
    unhappy = np.flatnonzero(arrays.unhappy & ~arrays.fixed & (placement.at == arrays.current))
    return [pod for pod in unhappy.tolist() if not placement.is_cured(int(arrays.current[pod]))]


def _matchings(prepared: PreparedProblem, alone: Choice, expectation: Expectation) -> Iterator[Choice]:
    """That can be carried out and keep the budget."""
    if not _anywhere_calm(prepared, expectation):
        return
    scope, arrays = prepared.problem.options.scope, prepared.arrays

    def worth(at: Ints) -> _Worth:
        return _worth(prepared, WeighedPlacement(prepared, expectation, at))

    for each in (Scope.UNHAPPY, Scope.CLUSTER) if scope is Scope.CLUSTER else (scope,):
        choice = choice_for_all(prepared, movable(arrays, each))
        if choice is not None and within_budget(arrays, choice.at):
            yield executable(prepared, Outcome(choice, choice, worth=worth)).choice
    if scope is Scope.CLUSTER and arrays.unhappy.sum() <= _MOST_SEARCHED:
        yield fewest_moves(prepared, alone).choice


def _anywhere_calm(prepared: PreparedProblem, expectation: Expectation) -> bool:
    """Whether there is a node at all where pods are expected to be happy, or a pod without a node."""
    calm = expectation.before <= 1 - prepared.problem.options.threshold
    return bool((calm & prepared.arrays.open_to_moves).any() or prepared.arrays.pending.any())
