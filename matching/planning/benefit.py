"""What a plan is expected to save, and what its moves cost: the figures that every plan carries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from matching.array_types import NOWHERE, Ints
from matching.plan import MoveBenefit, PlanBenefit, PlannedMove
from matching.planning.budget import movers
from matching.planning.expectation import Expectation
from matching.planning.move_price import MovePrices
from matching.planning.prepared import PreparedProblem

_DECIMALS = 3


@dataclass(frozen=True, slots=True)
class Benefits:
    plan: PlanBenefit
    moves: Mapping[int, MoveBenefit]
    """By pod; of the running pods that get another node."""

    def on(self, pod: int, move: PlannedMove) -> PlannedMove:
        """The move with its figures. Where the planner demands a benefit they are a reason, too: after why this pod and
        why that node."""
        found = self.moves.get(pod)
        if found is None:
            return move
        demanded = self.plan.required_ratio
        text = f"saves {found.saved:.1f} failing pod-minutes, price {found.price:.1f}"
        why = (f"{text}: {found.ratio:.1f} times, at least {demanded:g} demanded",) if demanded else ()
        return replace(move, benefit=found, reasons=(*move.reasons[:2], *why, *move.reasons[2:]))


def benefits_of(prepared: PreparedProblem, at: Ints, required_ratio: float, expectation: Expectation) -> Benefits:
    """`required_ratio`: what the planner demands, or 0."""
    arrays, prices = prepared.arrays, MovePrices(prepared.arrays)
    now, then = expectation.placed(arrays.current), expectation.placed(at)
    moved = movers(arrays, at)
    moved = moved[at[moved] != NOWHERE]
    saved = (then.saved_by_moves(moved, at[moved]) * expectation.minutes).round(_DECIMALS).tolist()
    moves = {
        pod: MoveBenefit(minutes, round(prices.of(pod), _DECIMALS))
        for pod, minutes in zip(moved.tolist(), saved, strict=True)
    }
    pods = max(1, int(((arrays.current != NOWHERE) | arrays.pending).sum()))
    plan = PlanBenefit(
        horizon=arrays.options.horizon,
        without=round(now.total() * expectation.minutes, _DECIMALS),
        expected=round(then.total() * expectation.minutes, _DECIMALS),
        lost_without=round(now.total() / pods, 2 * _DECIMALS),
        lost=round(then.total() / pods, 2 * _DECIMALS),
        price=round(sum(each.price for each in moves.values()), _DECIMALS),
        required_ratio=required_ratio,
    )
    return Benefits(plan, moves)
