"""A problem made ready for a planner: arrays, what is allowed, who likes whom."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from matching.arrays import Arrays, Ints, Mask, arrays_of, movable
from matching.candidates import Candidates
from matching.constraints.classes import judge
from matching.preferences import Preferences, ranking
from matching.problem import Problem
from matching.tastes import Tastes, tastes_of


@dataclass(frozen=True)
class Case:
    problem: Problem
    arrays: Arrays
    candidates: Candidates
    movable: Mask
    """By the scope that was asked for."""
    ranking: Ints
    preferences: Preferences

    @cached_property
    def tastes(self) -> Tastes:
        """Of the movable pods that are not unhappy."""
        return tastes_of(self.arrays, self.candidates, self.preferences, self.movable & ~self.arrays.unhappy)


def open_case(problem: Problem) -> Case:
    arrays = arrays_of(problem)
    may_move = movable(arrays, problem.options.scope)
    ranked = ranking(arrays)
    return Case(
        problem=problem,
        arrays=arrays,
        candidates=Candidates(arrays, judge(arrays.pods, arrays.nodes)),
        movable=may_move,
        ranking=ranked,
        preferences=Preferences(arrays, may_move, ranked),
    )
