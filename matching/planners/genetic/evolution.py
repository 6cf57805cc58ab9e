"""The genetic search: fitness, the check dictionary, and one generation after the other.

The fitness is C_max - sigma, never below 0; sigma is the standard deviation of the weighted node loads. The check
dictionary has for each pod the nodes it is forbidden on (hard) and those it is affine to (soft). Each generation
applies selection by roulette wheel, crossover and mutation, with a repair after each of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from matching.array_types import Floats, Ints, Mask
from matching.planning.node_loads import NodeLoads


@dataclass(frozen=True, slots=True)
class CheckDictionary:
    forbidden: Mask
    """(pods, nodes)"""
    affine: Mask
    """(pods, nodes): where a pod on a forbidden node goes instead. Without any: all nodes that are not forbidden."""

    def forbids(self, population: Ints) -> Mask:
        """Which genes of the individuals (rows) put a pod on a forbidden node."""
        pods = np.arange(population.shape[1])
        wrong: Mask = self.forbidden[pods, population]
        return wrong


class Repair:
    """Draws forbidden genes again among the pod's affine nodes; all others stay, affine or not."""

    def __init__(self, dictionary: CheckDictionary) -> None:
        self._dictionary = dictionary
        choice = dictionary.affine & ~dictionary.forbidden
        without = ~choice.any(axis=1)
        choice[without] = ~dictionary.forbidden[without]
        self._numbers = choice.sum(axis=1)
        self._first = np.concatenate([[0], np.cumsum(self._numbers)[:-1]]) if len(choice) else self._numbers
        self._nodes = np.nonzero(choice)[1]

    def draw(self, pods: Ints, random: Floats) -> Ints:
        """For each pod one of its nodes; `random` has a number in [0, 1) for each."""
        drawn: Ints = self._nodes[self._first[pods] + (random * self._numbers[pods]).astype(np.int64)]
        return drawn

    def mend(self, population: Ints, generator: np.random.Generator) -> None:
        """In place. A pod that is forbidden everywhere keeps what it has."""
        rows, pods = np.nonzero(self._dictionary.forbids(population))
        able = self._numbers[pods] > 0
        rows, pods = rows[able], pods[able]
        population[rows, pods] = self.draw(pods, generator.random(len(pods)))


@dataclass(frozen=True, slots=True)
class Trial:
    """What individuals are evaluated by."""

    loads: NodeLoads
    pods: Ints
    """The pods of the genes, in order."""
    start: Floats
    """Load of each node by pods that do not take part."""
    request: Floats
    """(axes, pods that take part)"""
    free: Floats
    """(axes, nodes): room by requests before they come."""
    largest: Floats
    """By axis: what requests may take of the largest node."""
    dictionary: CheckDictionary

    def sigma(self, population: Ints) -> Floats:
        """Of each individual."""
        nodes = len(self.start)
        pods = np.broadcast_to(np.arange(population.shape[1]), population.shape)
        added = sum(
            usage[pods] * factor[population]
            for usage, factor in zip(self.loads.usage[:, self.pods], self.loads.factor, strict=True)
        )
        loads = self.start + _by_node(np.asarray(added), population, nodes)
        if not self.loads.counted.any():
            return np.zeros(len(population))
        deviations: Floats = loads[:, self.loads.counted].std(axis=1)
        return deviations

    def penalty(self, population: Ints) -> Floats:
        """Share of the pods on forbidden nodes, and how far requests exceed the room."""
        wrong: Floats = self.dictionary.forbids(population).mean(axis=1)
        nodes = len(self.start)
        for request, free, largest in zip(self.request, self.free, self.largest, strict=True):
            taken = _by_node(np.broadcast_to(request, population.shape), population, nodes)
            wrong = wrong + (taken - free.clip(min=0.0)).clip(min=0.0).sum(axis=1) / largest
        return wrong


def fitness(cost: Floats, most: float) -> Floats:
    return (most - cost).clip(min=0.0)


def _by_node(amounts: Floats, population: Ints, nodes: int) -> Floats:
    """(individuals, nodes): the amounts of each individual's genes added up."""
    cells = population + np.arange(len(population))[:, None] * nodes
    sums = np.bincount(cells.ravel(), weights=amounts.ravel(), minlength=len(population) * nodes)
    return sums.astype(np.float64, copy=False).reshape(len(population), nodes)


@dataclass(frozen=True, slots=True)
class Rates:
    population: int
    generations: int
    crossover: float
    mutation: float
    elites: int
    most: float | None
    """C_max; None: the highest cost in the first population."""


@dataclass(frozen=True, slots=True)
class Evolved:
    best: Ints
    """The genes of the best individual of all generations."""
    sigma: Floats
    """Of the best individual so far, after each generation; the first number is that of the first population."""
    cost: Floats
    """The same with the penalty for forbidden and full nodes."""


def evolve(trial: Trial, rates: Rates, repair: Repair | None, current: Ints, seed: int) -> Evolved:
    """`current` has NOWHERE for a pod without a node; no `repair` is the plain algorithm."""
    generator = np.random.default_rng(seed)
    nodes = len(trial.start)
    population = _first_population(trial, rates, current, generator)
    _mend(population, repair, generator)
    cost = trial.sigma(population) + trial.penalty(population)
    most = float(cost.max()) if rates.most is None else rates.most
    best, lowest = population[cost.argmin()].copy(), float(cost.min())
    sigmas, costs = [float(trial.sigma(best[None])[0])], [lowest]
    for _ in range(rates.generations):
        elites = population[np.argsort(cost, kind="stable")[: rates.elites]].copy()
        population = population[_roulette(fitness(cost, most), generator)]
        _cross(population, rates.crossover, generator)
        _mend(population, repair, generator)
        _mutate(population, rates.mutation, nodes, generator)
        _mend(population, repair, generator)
        population[: len(elites)] = elites
        cost = trial.sigma(population) + trial.penalty(population)
        if cost.min() < lowest:
            best, lowest = population[cost.argmin()].copy(), float(cost.min())
        sigmas.append(float(trial.sigma(best[None])[0]))
        costs.append(lowest)
    return Evolved(best, np.array(sigmas), np.array(costs))


def _first_population(trial: Trial, rates: Rates, current: Ints, generator: np.random.Generator) -> Ints:
    """At random, but for one individual that is the placement as it is, pods without a node at random."""
    population = generator.integers(0, len(trial.start), (rates.population, len(trial.pods)))
    population[0] = np.where(current >= 0, current, population[0])
    return population


def _mend(population: Ints, repair: Repair | None, generator: np.random.Generator) -> None:
    if repair is not None:
        repair.mend(population, generator)


def _roulette(fit: Floats, generator: np.random.Generator) -> Ints:
    """As many individuals as there are, each drawn with a chance in proportion to its fitness."""
    wheel = np.cumsum(fit if fit.any() else np.ones_like(fit))
    drawn: Ints = np.searchsorted(wheel, generator.random(len(fit)) * wheel[-1], side="right")
    return drawn.clip(max=len(fit) - 1)


def _cross(population: Ints, rate: float, generator: np.random.Generator) -> None:
    """Pairs exchange their genes from one point on; in place."""
    pairs = len(population) // 2
    genes = population.shape[1]
    points = np.where(generator.random(pairs) < rate, generator.integers(0, genes, pairs), genes)
    behind = np.arange(genes) >= points[:, None]
    left, right = population[: 2 * pairs : 2], population[1 : 2 * pairs : 2]
    left[...], right[...] = np.where(behind, right, left), np.where(behind, left, right)


def _mutate(population: Ints, rate: float, nodes: int, generator: np.random.Generator) -> None:
    rows, genes = np.nonzero(generator.random(population.shape) < rate)
    population[rows, genes] = generator.integers(0, nodes, len(rows))
