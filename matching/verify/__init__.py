"""The verifier: checks a finished plan on its own. It shares no code with the planners except the types.

`reference` defines what feasible and blocking mean, slowly and readably. The other modules compute the same fast
enough for every plan of a large cluster, and are tested against the reference:

- `feasibility`: everything that makes a plan impossible or forbidden (violations), move by move in the plan's order
- `blocking`: counts the blocking pairs; `preferences` says which nodes a pod prefers, `fit` where it fits
- `replicas`: how the replicas of a workload are spread, as part of the preference
- `node_rules`: a pod's own rules about nodes; `pod_rules`: rules between pods, one move at a time;
  `pod_rules_by_node`: the same for all nodes at once; `volume_limits`: both for the limits of attached volumes
- `placement`: the problem and where each pod ends, as arrays; `compiled`: the loop of `blocking` with numba
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from matching.plan import BlockingCause, BlockingPair, BlockingPairs, Certificate, PlannedMove, Stay, Unplaced
from matching.problem import Problem
from matching.verify.blocking import blocking_pairs
from matching.verify.feasibility import stay_ends, violations

__all__ = ["certify"]

MAX_NAMED = 100
"""A plan that moves one pod of ten thousand can leave a million pairs. All are counted, this many are named."""


def certify(
    problem: Problem,
    moves: Sequence[PlannedMove],
    stays: Sequence[Stay],
    unplaced: Sequence[Unplaced],
    cause: BlockingCause = BlockingCause.NO_STABLE_MATCHING,
    held_back: Collection[str] = (),
) -> Certificate:
    """`cause` is the planner's explanation of the blocking pairs, if there are any; it does not change their count.
    Pairs of pods that are `held_back` by the order of the moves get that as their cause, and pairs of pods that have or
    match a rule between pods those rules."""
    wrong = tuple(violations(problem, moves, stays, unplaced))

    def count() -> BlockingPairs:
        ends: dict[str, str | None] = {pod.pod: None for pod in unplaced}
        ends.update(zip(*stay_ends(stays), strict=True))
        ends.update({move.pod: move.target for move in moves})
        found = blocking_pairs(problem, ends, MAX_NAMED)
        pairs = tuple(
            BlockingPair(pod, node, _cause(pod in held_back, between, cause)) for pod, node, between in found.first
        )
        return BlockingPairs(pairs, found.count - len(pairs))

    return Certificate(not wrong, wrong, count)


def _cause(held_back: bool, between_pods: bool, cause: BlockingCause) -> BlockingCause:
    if held_back:
        return BlockingCause.MOVE_ORDER
    return BlockingCause.BETWEEN_PODS if between_pods else cause
