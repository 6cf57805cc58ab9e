"""A problem made ready for a planner: arrays, what is allowed, who likes whom."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from matching.arrays import Arrays, Ints, Mask, movable
from matching.candidates import Candidates
from matching.compiled import loading
from matching.compiled.arena import Ground, ground
from matching.order import Ordered
from matching.preferences import Preferences
from matching.prepared import Prepared, prepared
from matching.problem import Problem
from matching.tastes import Tastes, favourites_of, quick_tastes_of, tastes_of


@dataclass(frozen=True)
class Case:
    problem: Problem
    prepared: Prepared
    movable: Mask
    """By the scope that was asked for."""
    preferences: Preferences
    orders: dict[bytes, Ordered] = field(default_factory=dict)
    """The last placement whose moves were put into an order."""

    @property
    def arrays(self) -> Arrays:
        return self.prepared.arrays

    @property
    def candidates(self) -> Candidates:
        return self.prepared.candidates

    @property
    def ranking(self) -> Ints:
        return self.prepared.ranking

    def tastes(self, asked: Mask) -> Tastes:
        """Of those pods, which must be movable and not unhappy."""
        kernels = loading.kernels(int(asked.sum()), len(self.arrays.nodes))
        if kernels is None or not self.arrays.nodes:
            return tastes_of(self.arrays, self.candidates, self.preferences, asked)
        return quick_tastes_of(kernels, self.ground, asked)

    @cached_property
    def favourites(self) -> Ints:
        """Of the movable pods that are not unhappy the node each likes best, whatever is on it; else NOWHERE."""
        asked = self.movable & ~self.arrays.unhappy
        return favourites_of(self.arrays, self.candidates, self.preferences, asked)

    @cached_property
    def ground(self) -> Ground:
        """For the compiled loops: of the movable and the pending pods."""
        asked = self.movable | self.arrays.pending
        return ground(self.arrays, self.candidates, self.preferences, asked)


def open_case(problem: Problem) -> Case:
    ready = prepared(problem)
    may_move = movable(ready.arrays, problem.options.scope)
    return Case(
        problem=problem,
        prepared=ready,
        movable=may_move,
        preferences=Preferences(ready.arrays, may_move, ready.ranking),
    )
