"""Fitness: C_max - sigma, never below 0; sigma is the standard deviation of the weighted node loads."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from matching.arrays import TOLERANCE, Floats, Ints
from matching.planners.genetic.dictionary import Dictionary
from matching.planners.node_loads import NodeLoads


@dataclass(frozen=True, slots=True)
class Trial:
    """What individuals are judged by."""

    loads: NodeLoads
    pods: Ints
    """Whose genes they are, in order."""
    start: Floats
    """Load of each node by what does not take part."""
    request: Floats
    """(axes, pods that take part)"""
    free: Floats
    """(axes, nodes): room by requests before they come."""
    dictionary: Dictionary

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
        """Share of the pods that are where they may not be, and how far requests exceed the room."""
        wrong: Floats = self.dictionary.forbids(population).mean(axis=1)
        nodes = len(self.start)
        for request, free in zip(self.request, self.free, strict=True):
            taken = _by_node(np.broadcast_to(request, population.shape), population, nodes)
            wrong = wrong + (taken - free.clip(min=0.0) - TOLERANCE).clip(min=0.0).sum(axis=1)
        return wrong


def fitness(cost: Floats, most: float) -> Floats:
    return (most - cost).clip(min=0.0)


def _by_node(amounts: Floats, population: Ints, nodes: int) -> Floats:
    """(individuals, nodes): the amounts of each individual's genes added up."""
    cells = population + np.arange(len(population))[:, None] * nodes
    sums = np.bincount(cells.ravel(), weights=amounts.ravel(), minlength=len(population) * nodes)
    return sums.astype(np.float64, copy=False).reshape(len(population), nodes)
