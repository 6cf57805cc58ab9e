"""The planners of KSE: GreedyLB and RefineLB.

GreedyLB puts the heaviest pod first on the least loaded node, wherever pods are now. `greedy` follows the text of the
thesis: node loads start from what cannot move, as shares of each node's room. It searches all allowed nodes instead of
using a heap, because the head of one heap is useless for pods with constraints. `greedy-published` follows the code of
the thesis: one metric in its own unit, background ignored, no budget, no comparison with doing nothing.

RefineLB moves as few pods as needed from heavy nodes to light ones. A node is heavy above average x overload and light
below average. `refine` follows the text: of the heaviest node with a possible move, the pod and light node that come
closest to average x overload without exceeding it, until no node is heavy or nothing can move. `refine-published`
follows the code: one metric in its own unit, the heaviest pod that fits on the first light node that takes it, and the
round ends as soon as the heaviest node has no possible move.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import ClassVar

import numpy as np

from matching.array_types import NOWHERE, Floats, Ints, Mask
from matching.model.ledger import Ledger
from matching.parameters import ParameterError
from matching.plan import Plan, Promise
from matching.planning.load_balancing import Draft, LoadObjective, limited_outcome, pending_only, unlimited_outcome
from matching.planning.node_loads import NodeLoads, absolute, check_weights, mark_unknown, shares_of_room
from matching.planning.placement import Choose, LeastLoaded, Placed, heaviest_first, place_all
from matching.planning.prepared import PreparedProblem, prepare
from matching.planning.reasons.wording import PENDING, amount
from matching.planning.write_plan import write_plan
from matching.problem import TOLERANCE, Problem

_GREEDY_STAY = "the least loaded node that takes it, at its turn, is its current one"


@dataclass(frozen=True, slots=True)
class GreedyPlanner:
    weights: Mapping[str, float] = field(default_factory=lambda: {"cpu": 1.0})
    """Axes to balance by; several make a weighted mean."""

    name: ClassVar[str] = "greedy"
    waives: ClassVar[frozenset[Promise]] = frozenset()

    def __post_init__(self) -> None:
        check_weights(self.weights)

    def plan(self, problem: Problem) -> Plan:
        prepared = prepare(mark_unknown(problem, self.weights))
        objective = LoadObjective(shares_of_room(prepared, self.weights), spread, "the spread of the node loads")
        outcome = limited_outcome(prepared, _greedy_draft(prepared, objective), objective)
        return write_plan(self.name, prepared, outcome)


@dataclass(frozen=True, slots=True)
class GreedyPublishedPlanner:
    metric: str = "cpu"

    name: ClassVar[str] = "greedy-published"
    waives: ClassVar[frozenset[Promise]] = frozenset({Promise.NEVER_WORSE, Promise.BUDGETS})

    def plan(self, problem: Problem) -> Plan:
        prepared = prepare(mark_unknown(problem, [self.metric]))
        loads = absolute(prepared.arrays, self.metric)
        pods_only = replace(loads, background=np.zeros_like(loads.background))
        objective = LoadObjective(
            pods_only, spread, "the spread of the pods' use", partial(amount, self.metric), partial(amount, self.metric)
        )
        outcome = unlimited_outcome(prepared, _greedy_draft(prepared, objective), objective)
        return write_plan(self.name, prepared, outcome)


def _greedy_draft(prepared: PreparedProblem, objective: LoadObjective) -> Draft:
    sizes = objective.loads.sizes()
    order = heaviest_first(prepared, sizes, prepared.movable)
    chosen: list[LeastLoaded] = []

    def begin(start: Ints) -> Choose:
        chosen[:] = [LeastLoaded.starting_from(objective.loads, start)]
        return chosen[0]

    placed = place_all(prepared, order, begin)
    if placed is None:
        return Draft(None)
    reasons = _greedy_reasons(prepared, order, chosen[0], placed.at, objective)
    return Draft(placed, reasons, chosen[0].ranks, _GREEDY_STAY)


def _greedy_reasons(
    prepared: PreparedProblem, order: Ints, chosen: LeastLoaded, at: Ints, objective: LoadObjective
) -> dict[int, tuple[str, ...]]:
    nodes, pending = prepared.arrays.nodes, prepared.arrays.pending
    reasons: dict[int, tuple[str, ...]] = {}
    for turn, pod in enumerate(order.tolist(), 1):
        if pod in chosen.found:
            why = PENDING if pending[pod] else f"heaviest first: number {turn} of {len(order)}"
            where = f"{nodes[at[pod]].name} was the least loaded node that could take it, at"
            reasons[pod] = (why, f"{where} {objective.shown(chosen.found[pod])}")
    return reasons


def spread(loads: Floats) -> float:
    return float(loads.max() - loads.min()) if len(loads) else 0.0


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
        prepared = prepare(mark_unknown(problem, self.weights))
        objective = LoadObjective(shares_of_room(prepared, self.weights), spread, "the spread of the node loads")
        draft = _refine_draft(prepared, objective, self.overload, closest_pair)
        return write_plan(self.name, prepared, limited_outcome(prepared, draft, objective))


@dataclass(frozen=True, slots=True)
class RefinePublishedPlanner:
    overload: float = 1.05
    metric: str = "cpu"

    name: ClassVar[str] = "refine-published"
    waives: ClassVar[frozenset[Promise]] = frozenset({Promise.NEVER_WORSE, Promise.BUDGETS})

    def __post_init__(self) -> None:
        _check_overload(self.overload)

    def plan(self, problem: Problem) -> Plan:
        prepared = prepare(mark_unknown(problem, [self.metric]))
        objective = LoadObjective(
            absolute(prepared.arrays, self.metric),
            spread,
            "the spread of the nodes' use",
            partial(amount, self.metric),
            partial(amount, self.metric),
        )
        draft = _refine_draft(prepared, objective, self.overload, first_that_fits)
        return write_plan(self.name, prepared, unlimited_outcome(prepared, draft, objective))


def _refine_draft(prepared: PreparedProblem, objective: LoadObjective, overload: float, rule: StepRule) -> Draft:
    state = RefineState(prepared, objective.loads, pending_only(prepared, objective.loads), overload)
    why, ranks = {}, {}
    while (step := rule(state)) is not None:
        why[step.pod] = (
            f"{prepared.arrays.nodes[step.source].name} is heavy: at {objective.shown(step.load)},"
            f" more than {overload:g} x the average of {objective.shown(state.average)}",
            f"{prepared.arrays.nodes[step.target].name} is light, and with it comes to {objective.shown(step.ends)}",
        )
        ranks[step.pod] = step.rank
        state.apply(step)
    return Draft(Placed(state.at), why, ranks, _why_refined_no_further(state))


def _why_refined_no_further(state: RefineState) -> str:
    return "no node is heavy any more" if not state.heavy() else "nothing more can go from a heavy to a light node"


def _check_overload(overload: float) -> None:
    if overload < 1.0:
        raise ParameterError("overload", f"is {overload:g}; it must be at least 1.0")


@dataclass(frozen=True, slots=True)
class RefineStep:
    pod: int
    source: int
    target: int
    load: float
    """Of the source, before."""
    ends: float
    """The target's load with the pod."""
    rank: int
    """1 when no light node would have come closer to the limit with this pod."""


class RefineState:
    """A placement that is refined move by move. The average is fixed at the start, so a light node never becomes heavy.
    No pod moves twice, so the search ends also where rounding says otherwise."""

    def __init__(self, prepared: PreparedProblem, loads: NodeLoads, at: Ints, overload: float) -> None:
        self.prepared, self.at = prepared, at.copy()
        self.loads = loads
        self.now: Floats = loads.of(self.at)
        counted = self.now[loads.counted]
        self.average = float(counted.mean()) if len(counted) else 0.0
        self.limit = self.average * overload
        self.ledger = Ledger(prepared.arrays, self.at)
        self._may_give = prepared.movable & (prepared.arrays.current != NOWHERE)
        self._exhausted: set[int] = set()
        """Heavy nodes without a possible move. Light nodes only fill up, so this holds until another node becomes
        light."""

    def heavy(self) -> list[int]:
        """The heaviest first; equal ones by name."""
        loads = self.now.round(12)
        found = np.flatnonzero(loads > self.limit + TOLERANCE)
        ordered: list[int] = found[np.argsort(-loads[found], kind="stable")].tolist()
        return ordered

    def givers(self) -> list[int]:
        return [node for node in self.heavy() if node not in self._exhausted]

    def mark_exhausted(self, node: int) -> None:
        self._exhausted.add(node)

    def light(self) -> Ints:
        return np.flatnonzero(self.now < self.average - TOLERANCE)

    def pods_of(self, node: int) -> Ints:
        """Its movable pods with a load, the heaviest first."""
        here = np.flatnonzero((self.at == node) & self._may_give)
        weight = self.loads.added_at(here, np.full(len(here), node)).round(12)
        weighty = weight > TOLERANCE
        return here[weighty][np.argsort(-weight[weighty], kind="stable")]

    def ends(self, pods: Ints, nodes: Ints) -> Floats:
        """(pods, nodes): the load of each node with each pod; minus infinity where that would pass the limit."""
        loads = (self.now[nodes] + self.loads.usage[:, pods].T @ self.loads.factor[:, nodes]).round(12)
        return np.where(loads <= self.limit + TOLERANCE, loads, -np.inf)

    def feasible(self, pod: int, nodes: Ints) -> Mask:
        """Which of the nodes may run the pod and have room."""
        able: Mask = (self.prepared.candidates.of(pod) & self.ledger.fits(pod))[nodes]
        return able

    def apply(self, step: RefineStep) -> None:
        added = self.loads.added_by(step.pod)
        self.ledger.take(step.pod, step.source)
        self.ledger.put(step.pod, step.target)
        self.now[step.source] -= added[step.source]
        self.now[step.target] += added[step.target]
        self.at[step.pod] = step.target
        self._may_give[step.pod] = False
        if self.now[step.source] < self.average:
            self._exhausted.clear()


StepRule = Callable[[RefineState], RefineStep | None]


def closest_pair(state: RefineState) -> RefineStep | None:
    """For the heaviest node with a possible move: the pod and node that come closest to the limit from below. Each
    pod's feasible nodes are looked up once."""
    light = state.light()
    for node in state.givers():
        pods = state.pods_of(node)
        ends = state.ends(pods, light)
        checked: set[int] = set()
        while ends.size and np.isfinite(best := ends.max()):
            row, column = divmod(int(ends.argmax()), len(light))
            if row in checked:
                rank = 1 + int((state.now[light] > state.now[light[column]]).sum())
                return RefineStep(int(pods[row]), node, int(light[column]), float(state.now[node]), float(best), rank)
            ends[row, ~state.feasible(int(pods[row]), light)] = -np.inf
            checked.add(row)
        state.mark_exhausted(node)
    return None


def first_that_fits(state: RefineState) -> RefineStep | None:
    """Of the heaviest node only: its heaviest pod that fits, on the first light node by name that takes it."""
    light = state.light()
    for node in state.heavy()[:1]:
        pods = state.pods_of(node)
        ends = state.ends(pods, light)
        for row, pod in enumerate(pods.tolist()):
            taking = np.flatnonzero(np.isfinite(ends[row]) & state.feasible(pod, light))
            if len(taking):
                target = int(taking[0])
                return RefineStep(pod, node, int(light[target]), float(state.now[node]), float(ends[row, target]), 1)
    return None
