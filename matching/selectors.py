"""Evaluation of label selectors, as Kubernetes does it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from matching.problem import ProblemError, Requirement

_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)


def matches(requirements: Iterable[Requirement], labels: Mapping[str, str]) -> bool:
    """Whether the labels meet all requirements; without requirements they always do.

    Gt and Lt compare 64-bit integers: a value that is not one never matches. An unknown operator raises ProblemError.
    """
    return all(_holds(requirement, labels.get(requirement.key)) for requirement in requirements)


def is_integer(text: str) -> bool:
    """Whether Gt and Lt can compare it."""
    return _INTEGER.fullmatch(text) is not None and -(2**63) <= int(text) < 2**63


def _holds(requirement: Requirement, value: str | None) -> bool:
    match requirement.operator:
        case "In":
            return value is not None and value in requirement.values
        case "NotIn":
            return value is None or value not in requirement.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt":
            return value is not None and is_integer(value) and int(value) > int(requirement.values[0])
        case "Lt":
            return value is not None and is_integer(value) and int(value) < int(requirement.values[0])
        case unknown:
            raise ProblemError(f"{unknown!r} is no operator of a label selector")
