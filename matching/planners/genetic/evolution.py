"""Generation after generation: selection by roulette wheel, crossover, mutation, and repair after each of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from matching.arrays import Floats, Ints
from matching.planners.genetic.dictionary import Repair
from matching.planners.genetic.fitness import Trial, fitness


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
    """The same with what is forbidden or too full added."""


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
    """Neighbours exchange their genes from one point on; in place."""
    pairs = len(population) // 2
    genes = population.shape[1]
    points = np.where(generator.random(pairs) < rate, generator.integers(0, genes, pairs), genes)
    behind = np.arange(genes) >= points[:, None]
    left, right = population[: 2 * pairs : 2], population[1 : 2 * pairs : 2]
    left[...], right[...] = np.where(behind, right, left), np.where(behind, left, right)


def _mutate(population: Ints, rate: float, nodes: int, generator: np.random.Generator) -> None:
    rows, genes = np.nonzero(generator.random(population.shape) < rate)
    population[rows, genes] = generator.integers(0, nodes, len(rows))
