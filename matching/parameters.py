"""The error that a planner raises for a parameter whose value it refuses."""

from __future__ import annotations

from matching.problem import ProblemError


class ParameterError(ProblemError):
    """`parameter` is the public name (camelCase); the text says what was given and what to give instead."""

    def __init__(self, parameter: str, what: str) -> None:
        self.parameter = parameter
        self.what = what
        super().__init__(f"parameter {parameter}: {what}")
