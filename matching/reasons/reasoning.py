"""Moves explained by the planner that made them, for every planner but those that match by preference.

The planner says why a pod goes and where; the other nodes are compared as the plan leaves them: what the planner's
own measure would be there, or what stands in the way.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from matching.arrays import NOWHERE, Floats
from matching.case import Case
from matching.ledger import Ledger
from matching.order import by_value
from matching.outcome import Choice
from matching.plan import PlannedMove, Rejected, Unplaced
from matching.reasons.moves import MOST_EXPLAINED, no_node
from matching.reasons.obstacles import Kind, Obstacles


class Reasoning(Protocol):
    def rank(self, pod: int) -> int:
        """The place, from 1, of the node it got among those it might have had."""
        ...

    def why_moved(self, pod: int) -> tuple[str, ...]:
        """The rule that chose the pod, and the rule that chose the node."""
        ...

    def why_stayed(self, pod: int) -> str: ...

    def costs(self, pod: int) -> Floats:
        """Per node, with the plan done: what the planner would compare; the lowest is the best."""
        ...

    def worded(self, cost: float) -> str: ...


def told(case: Case, choice: Choice, reasoning: Reasoning) -> tuple[dict[int, PlannedMove], list[Unplaced]]:
    """As `explained` does it for preferences."""
    arrays, at = case.arrays, choice.at
    ledger = Ledger(arrays, at)
    moves: dict[int, PlannedMove] = {}
    for pod in by_value(arrays, case.ranking, np.flatnonzero((at != arrays.home) & (at != NOWHERE))):
        rejected = _rejected(case, ledger, pod, int(at[pod]), reasoning) if len(moves) < MOST_EXPLAINED else ()
        who, target = arrays.pods[pod], arrays.nodes[int(at[pod])].name
        moves[pod] = PlannedMove(
            who.key,
            who.uid,
            who.node,
            target,
            reasoning.rank(pod),
            reasoning.why_moved(pod),
            rejected,
            who.strategy,
        )
    homeless = np.flatnonzero((arrays.pending | (arrays.home != NOWHERE)) & (at == NOWHERE)).tolist()
    return moves, [no_node(case, ledger, pod) for pod in homeless]


def _rejected(case: Case, ledger: Ledger, pod: int, target: int, reasoning: Reasoning) -> tuple[Rejected, ...]:
    ledger.take(pod, target)
    obstacles = Obstacles(case, ledger, pod)
    costs = reasoning.costs(pod)
    possible = (obstacles.kind <= Kind.CROWDED).astype(np.int64)
    order = np.lexsort((costs, -possible))
    listed = obstacles.listed(
        order[order != target],
        lambda node: reasoning.worded(float(costs[node])) if possible[node] else obstacles.text(node),
    )
    ledger.put(pod, target)
    return listed
