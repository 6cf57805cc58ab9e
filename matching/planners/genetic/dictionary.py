"""The check dictionary: per pod the nodes it is forbidden on (hard) and those it is affine to (soft)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from matching.arrays import Floats, Ints, Mask


@dataclass(frozen=True, slots=True)
class Dictionary:
    forbidden: Mask
    """(pods, nodes)"""
    affine: Mask
    """(pods, nodes): where a forbidden pod is sent instead. Nowhere affine means: anywhere that is not forbidden."""

    def forbids(self, population: Ints) -> Mask:
        """Which genes of the individuals (rows) put a pod where it may not be."""
        pods = np.arange(population.shape[1])
        wrong: Mask = self.forbidden[pods, population]
        return wrong


class Repair:
    """Forbidden genes redrawn among the pod's affine nodes; all others stay, affine or not."""

    def __init__(self, dictionary: Dictionary) -> None:
        self._dictionary = dictionary
        choice = dictionary.affine & ~dictionary.forbidden
        nowhere = ~choice.any(axis=1)
        choice[nowhere] = ~dictionary.forbidden[nowhere]
        self._numbers = choice.sum(axis=1)
        self._first = np.concatenate([[0], np.cumsum(self._numbers)[:-1]]) if len(choice) else self._numbers
        self._nodes = np.nonzero(choice)[1]

    def draw(self, pods: Ints, random: Floats) -> Ints:
        """For each pod one of the nodes it may be sent to; `random` has a number in [0, 1) for each."""
        drawn: Ints = self._nodes[self._first[pods] + (random * self._numbers[pods]).astype(np.int64)]
        return drawn

    def mend(self, population: Ints, generator: np.random.Generator) -> None:
        """In place. A pod that is forbidden everywhere keeps what it has."""
        rows, pods = np.nonzero(self._dictionary.forbids(population))
        able = self._numbers[pods] > 0
        rows, pods = rows[able], pods[able]
        population[rows, pods] = self.draw(pods, generator.random(len(pods)))
