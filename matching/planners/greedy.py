"""GreedyLB (KSE): the heaviest pod first onto the least loaded node, wherever pods are now.

`greedy` is the thesis' text: node loads start from what cannot move, as shares of each node's room. A masked minimum
takes the place of the text's heap, because rules make the head of one heap useless to most pods. `greedy-published`
is its code: one metric in its own unit, background ignored, no budget, not compared with doing nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import ClassVar

import numpy as np

from matching.arrays import Floats, Ints
from matching.case import Case, open_case
from matching.judging import judged
from matching.plan import Plan, Promise
from matching.planners.node_loads import absolute, check_weights, shares_of_room
from matching.planners.placing import Choose, LeastLoaded, heaviest_first, place_everybody
from matching.planners.settling import Aim, Wish, as_wished, settle
from matching.problem import Problem
from matching.reasons.wording import PENDING, amount
from matching.writing import write_plan

STAY = "the least loaded node that takes it, at its turn, is the one it has"


@dataclass(frozen=True, slots=True)
class GreedyPlanner:
    weights: Mapping[str, float] = field(default_factory=lambda: {"cpu": 1.0})
    """Axes to balance by; several make a weighted mean."""

    name: ClassVar[str] = "greedy"
    waives: ClassVar[frozenset[Promise]] = frozenset()

    def __post_init__(self) -> None:
        check_weights(self.weights)

    def plan(self, problem: Problem) -> Plan:
        case = open_case(judged(problem, self.weights))
        aim = Aim(shares_of_room(case, self.weights), spread, "the spread of the node loads")
        return write_plan(self.name, case, settle(case, greedy_wish(case, aim), aim))


@dataclass(frozen=True, slots=True)
class GreedyPublishedPlanner:
    metric: str = "cpu"

    name: ClassVar[str] = "greedy-published"
    waives: ClassVar[frozenset[Promise]] = frozenset({Promise.NEVER_WORSE, Promise.BUDGETS})

    def plan(self, problem: Problem) -> Plan:
        case = open_case(judged(problem, [self.metric]))
        loads = absolute(case.arrays, self.metric)
        pods_only = replace(loads, background=np.zeros_like(loads.background))
        aim = Aim(
            pods_only, spread, "the spread of the pods' use", partial(amount, self.metric), partial(amount, self.metric)
        )
        return write_plan(self.name, case, as_wished(case, greedy_wish(case, aim), aim))


def greedy_wish(case: Case, aim: Aim) -> Wish:
    sizes = aim.loads.sizes()
    order = heaviest_first(case, sizes, case.movable)
    chosen: list[LeastLoaded] = []

    def begin(start: Ints) -> Choose:
        chosen[:] = [LeastLoaded.beside(aim.loads, start)]
        return chosen[0]

    placed = place_everybody(case, order, begin)
    if placed is None:
        return Wish(None)
    return Wish(placed, _words(case, order, chosen[0], placed.at, aim), chosen[0].ranks, STAY)


def _words(case: Case, order: Ints, chosen: LeastLoaded, at: Ints, aim: Aim) -> dict[int, tuple[str, ...]]:
    nodes, pending = case.arrays.nodes, case.arrays.pending
    words: dict[int, tuple[str, ...]] = {}
    for turn, pod in enumerate(order.tolist(), 1):
        if pod in chosen.found:
            who = PENDING if pending[pod] else f"heaviest first: number {turn} of {len(order)}"
            where = f"{nodes[at[pod]].name} was the least loaded node that could take it, at"
            words[pod] = (who, f"{where} {aim.shown(chosen.found[pod])}")
    return words


def spread(loads: Floats) -> float:
    return float(loads.max() - loads.min()) if len(loads) else 0.0
