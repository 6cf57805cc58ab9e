"""The genetic search as a planner."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from matching.array_types import NOWHERE, Floats, Ints
from matching.model.arrays import Arrays
from matching.model.ledger import Ledger
from matching.parameters import ParameterError
from matching.plan import Plan, Promise
from matching.planners.genetic.evolution import CheckDictionary, Evolved, Rates, Repair, Trial, evolve
from matching.planning.load_balancing import Draft, LoadObjective, limited_outcome
from matching.planning.node_loads import NodeLoads, axis_weights, check_weights, mark_unknown, weighted_shares
from matching.planning.placement import LeastLoaded, as_wanted, heaviest_first, place_all
from matching.planning.prepared import PreparedProblem, prepare
from matching.planning.reasons.wording import percent
from matching.planning.write_plan import write_plan
from matching.problem import TOLERANCE, Problem

_STAY = "the best placement found leaves it where it is"


@dataclass(frozen=True, slots=True)
class GeneticPlanner:
    weights: Mapping[str, float] = field(default_factory=dict)
    """By axis; empty: every axis of the problem weighs 1. 0 drops an axis."""
    node_weights: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """By node and axis, over `weights`: a node with smaller weights is given more to do."""
    dictionary: bool = True
    """False is the plain algorithm: what is forbidden only costs fitness."""
    seed: int = 0
    population: int = 100
    generations: int = 200
    crossover: float = 0.8
    mutation: float = 0.005
    elites: int = 1
    """Individuals that go into the next generation unchanged; 0 turns it off."""
    c_max: float | None = None
    """The constant of the fitness; unset: the highest cost in the first population."""

    name: ClassVar[str] = "genetic"
    waives: ClassVar[frozenset[Promise]] = frozenset()

    def __post_init__(self) -> None:
        if self.weights:
            check_weights(self.weights)
        for node, weights in self.node_weights.items():
            check_weights(weights, f"nodeWeights.{node}")
        for name, least in (("population", 2), ("generations", 0), ("elites", 0), ("seed", 0)):
            if getattr(self, name) < least:
                raise ParameterError(name, f"is {getattr(self, name)}; it must be at least {least}")
        for name in ("crossover", "mutation"):
            if not 0 <= getattr(self, name) <= 1:
                raise ParameterError(name, f"is {getattr(self, name):g}; it must be between 0 and 1")
        if self.elites >= self.population:
            raise ParameterError("elites", f"is {self.elites}; it must be below the population of {self.population}")

    def plan(self, problem: Problem) -> Plan:
        prepared = self._prepare(problem)
        loads = self._loads(prepared)
        objective = LoadObjective(loads, deviation, "the standard deviation of the node loads")
        return write_plan(self.name, prepared, limited_outcome(prepared, self._draft(prepared, loads), objective))

    def evolve(self, problem: Problem) -> Evolved:
        """The search alone, to see how it converges."""
        prepared = self._prepare(problem)
        return self._evolve(prepared, self._loads(prepared))

    def _evolve(self, prepared: PreparedProblem, loads: NodeLoads) -> Evolved:
        pods = np.flatnonzero(prepared.movable)
        trial = _trial(prepared, loads, pods)
        rates = Rates(self.population, self.generations, self.crossover, self.mutation, self.elites, self.c_max)
        repair = Repair(trial.dictionary) if self.dictionary else None
        return evolve(trial, rates, repair, prepared.arrays.current[pods], self.seed)

    def _draft(self, prepared: PreparedProblem, loads: NodeLoads) -> Draft:
        genes, why = prepared.arrays.current.copy(), ""
        if prepared.arrays.nodes and prepared.movable.any():
            evolved = self._evolve(prepared, loads)
            genes[prepared.movable] = evolved.best
            first, last = percent(float(evolved.sigma[0])), percent(float(evolved.sigma[-1]))
            why = f"best placement found in {self.generations} generations: deviation of the loads {first} to {last}"
        order = heaviest_first(prepared, loads.sizes(), prepared.movable)
        placed = place_all(prepared, order, lambda at: as_wanted(prepared, genes, LeastLoaded.starting_from(loads, at)))
        return Draft(placed, _reasons(prepared, genes, placed.at, why) if placed else {}, {}, _STAY)

    def _prepare(self, problem: Problem) -> PreparedProblem:
        by_node = {axis for own in self.node_weights.values() for axis in own}
        return prepare(mark_unknown(problem, by_node.union(self.weights or _weighable(problem))))

    def _loads(self, prepared: PreparedProblem) -> NodeLoads:
        return weighted_shares(prepared, self._weights(prepared.arrays, _weighable(prepared.problem)))

    def _weights(self, arrays: Arrays, weighable: Sequence[str]) -> Floats:
        """(axes, nodes), each node's divided by how many of them are not 0."""
        common = axis_weights(arrays, self.weights or dict.fromkeys(weighable, 1.0))
        names = {node.name: at for at, node in enumerate(arrays.nodes)}
        weights = np.repeat(common[:, None], len(arrays.nodes), axis=1)
        for node, own in self.node_weights.items():
            if node not in names:
                raise ParameterError(f"nodeWeights.{node}", "the problem has no such node")
            given = axis_weights(arrays, own, f"nodeWeights.{node}")
            named = np.array([axis in own for axis in arrays.axes])
            weights[:, names[node]] = np.where(named, given, common)
        shares: Floats = weights / np.count_nonzero(weights, axis=0).clip(min=1)
        return shares


def _weighable(problem: Problem) -> list[str]:
    return [axis for axis in problem.axes if axis not in problem.hard_only]


def deviation(loads: Floats) -> float:
    return float(loads.std()) if len(loads) else 0.0


def check_dictionary(prepared: PreparedProblem, pods: Ints) -> CheckDictionary:
    """Forbidden nodes are those that the node rules refuse, and those that could not take the pod if they were empty,
    but for the one it is on. Affine nodes meet most of the pod's soft constraints."""
    nodes, soft = len(prepared.arrays.nodes), prepared.arrays.soft
    empty = Ledger(prepared.arrays, np.full(len(prepared.arrays.pods), NOWHERE))
    allowed, affine = np.zeros((len(pods), nodes), dtype=bool), np.zeros((len(pods), nodes), dtype=bool)
    for row, pod in enumerate(pods.tolist()):
        allowed[row] = prepared.candidates.of(pod)
        affine[row] = allowed[row] & empty.fits_requests(pod)
        current = prepared.arrays.current[pod]
        allowed[row] &= affine[row] | (np.arange(nodes) == current)
        if soft is not None and soft.has_any[pod] and affine[row].any():
            unmet = soft.unmet(pod)
            affine[row] &= unmet <= unmet[affine[row]].min() + TOLERANCE
    return CheckDictionary(~allowed, affine)


def _trial(prepared: PreparedProblem, loads: NodeLoads, pods: Ints) -> Trial:
    staying = np.where(prepared.movable, NOWHERE, prepared.arrays.current)
    return Trial(
        loads=loads,
        pods=pods,
        start=loads.of(staying),
        request=prepared.arrays.request[:, pods],
        free=Ledger(prepared.arrays, staying).free,
        largest=prepared.arrays.requestable.max(axis=1, initial=1.0),
        dictionary=check_dictionary(prepared, pods),
    )


def _reasons(prepared: PreparedProblem, genes: Ints, at: Ints, why: str) -> dict[int, tuple[str, ...]]:
    reasons: dict[int, tuple[str, ...]] = {}
    for pod in np.flatnonzero(at != prepared.arrays.current).tolist():
        if at[pod] == genes[pod]:
            reasons[pod] = (why,)
        else:
            reasons[pod] = (why, "its node there has no room by requests: the least loaded node that takes it")
    return reasons
