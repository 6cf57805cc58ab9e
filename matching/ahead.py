"""Reads a problem before there is anything to plan. The next problem takes over what it has in common with this one."""

from __future__ import annotations

from matching.model.arrays import arrays_of
from matching.problem import Problem

__all__ = ["read_ahead"]


def read_ahead(problem: Problem) -> None:
    """Raise ProblemError, naming the object, when the problem is not valid."""
    arrays_of(problem)
