"""RefineLB (KSE): heavy nodes give pods to light ones, as few as it takes.

A node is heavy above average x overload and light below average. `refine` is the thesis' text: of the heaviest node
that can give, the pod and light node that come closest to average x overload without passing it, until nothing is
heavy or nothing can move. `refine-published` is its code: one metric in its own unit, the heaviest pod that fits and
the first light node that takes it, and the round ends as soon as the heaviest node has nothing to give.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar

from matching.case import Case, open_case
from matching.judging import judged
from matching.parameters import ParameterError
from matching.plan import Plan, Promise
from matching.planners.greedy import spread
from matching.planners.node_loads import absolute, check_weights, shares_of_room
from matching.planners.placing import Placed
from matching.planners.refining import Choosing, Refining, closest_pair, first_that_fits
from matching.planners.settling import Aim, Wish, as_wished, pending_only, settle
from matching.problem import Problem
from matching.reasons.wording import amount
from matching.writing import write_plan


@dataclass(frozen=True, slots=True)
class RefinePlanner:
    overload: float = 1.05
    """A node is heavy when its load is above this many times the average."""
    weights: Mapping[str, float] = field(default_factory=lambda: {"cpu": 1.0})
    """Axes to balance by; several make a weighted mean."""

    name: ClassVar[str] = "refine"
    waives: ClassVar[frozenset[Promise]] = frozenset()

    def __post_init__(self) -> None:
        _check_overload(self.overload)
        check_weights(self.weights)

    def plan(self, problem: Problem) -> Plan:
        case = open_case(judged(problem, self.weights))
        aim = Aim(shares_of_room(case, self.weights), spread, "the spread of the node loads")
        return write_plan(self.name, case, settle(case, _wish(case, aim, self.overload, closest_pair), aim))


@dataclass(frozen=True, slots=True)
class RefinePublishedPlanner:
    overload: float = 1.05
    metric: str = "cpu"

    name: ClassVar[str] = "refine-published"
    waives: ClassVar[frozenset[Promise]] = frozenset({Promise.NEVER_WORSE, Promise.BUDGETS})

    def __post_init__(self) -> None:
        _check_overload(self.overload)

    def plan(self, problem: Problem) -> Plan:
        case = open_case(judged(problem, [self.metric]))
        aim = Aim(
            absolute(case.arrays, self.metric),
            spread,
            "the spread of the nodes' use",
            partial(amount, self.metric),
            partial(amount, self.metric),
        )
        return write_plan(self.name, case, as_wished(case, _wish(case, aim, self.overload, first_that_fits), aim))


def _wish(case: Case, aim: Aim, overload: float, choosing: Choosing) -> Wish:
    refining = Refining(case, aim.loads, pending_only(case, aim.loads), overload)
    why, ranks = {}, {}
    while (step := choosing(refining)) is not None:
        why[step.pod] = (
            f"{case.arrays.nodes[step.source].name} is heavy: at {aim.shown(step.load)},"
            f" more than {overload:g} x the average of {aim.shown(refining.average)}",
            f"{case.arrays.nodes[step.target].name} is light, and with it comes to {aim.shown(step.ends)}",
        )
        ranks[step.pod] = step.rank
        refining.go(step)
    return Wish(Placed(refining.at), why, ranks, _stay(refining))


def _stay(refining: Refining) -> str:
    return "no node is heavy any more" if not refining.heavy() else "nothing more can go from a heavy to a light node"


def _check_overload(overload: float) -> None:
    if overload < 1.0:
        raise ParameterError("overload", f"is {overload:g}; it must be at least 1.0")
