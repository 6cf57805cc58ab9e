"""The certificate: an independent look at a finished plan. Shares no code with the planners but the types.

Feasible means that every move obeys the rules, that every node that receives a pod has room by requests and pod
count in the end, that rules between pods allow each move at its turn, and that every pod is accounted for. (p, n)
blocks when p may run on n, strictly prefers n to what it has, and fits there, with the full headroom, once the movable
pods that n ranks below p are taken away; where inertia counts, a happy p needs no headroom on its own node. What p
prefers is seen at its turn: pods that rank above it where they end, all others where they were.
"""

from __future__ import annotations

from collections.abc import Sequence

from matching.certificate.blocking import blocking_pairs
from matching.certificate.feasibility import violations
from matching.plan import BlockingCause, BlockingPair, Certificate, PlannedMove, Stay, Unplaced
from matching.problem import Problem

__all__ = ["certify"]

MOST_NAMED = 100
"""A plan that moves one pod of ten thousand can leave a million pairs; they are counted, these are named."""


def certify(
    problem: Problem,
    moves: Sequence[PlannedMove],
    stays: Sequence[Stay],
    unplaced: Sequence[Unplaced],
    cause: BlockingCause = BlockingCause.NO_STABLE_MATCHING,
) -> Certificate:
    """`cause` is what the planner says of the pairs that are left, if there are any; it does not change the count.
    Pairs of pods that rules between pods are about have that as their cause."""
    wrong = tuple(violations(problem, moves, stays, unplaced))
    ends: dict[str, str | None] = {pod.pod: None for pod in unplaced}
    ends.update({stay.pod: stay.node for stay in stays})
    ends.update({move.pod: move.target for move in moves})
    found = blocking_pairs(problem, ends, MOST_NAMED)
    pairs = tuple(
        BlockingPair(pod, node, BlockingCause.BETWEEN_PODS if between else cause) for pod, node, between in found.first
    )
    return Certificate(feasible=not wrong, violations=wrong, blocking=pairs, unnamed=found.count - len(pairs))
