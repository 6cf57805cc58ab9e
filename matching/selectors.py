"""Label selectors, with the semantics of Kubernetes. The one evaluation that everything but the verifier uses."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from matching.problem import ProblemError, Requirement, Selector

_INTEGER = re.compile(r"([+-]?)0*([0-9]{1,19})", re.ASCII)
"""Whole numbers that may have 64 bits. Python's `int` takes spaces and underscores, and refuses very long numbers."""


def matches(requirements: Iterable[Requirement], labels: Mapping[str, str]) -> bool:
    """Whether all requirements hold; no requirements match everything."""
    return all(_holds(requirement, labels) for requirement in requirements)


def selects(selector: Selector | None, labels: Mapping[str, str]) -> bool:
    """No selector selects nothing, an empty one everything."""
    return selector is not None and matches(selector.requirements, labels)


def parse_integer(text: str) -> int | None:
    """As Kubernetes reads the values that Gt and Lt compare: a decimal 64-bit integer. None for anything else."""
    found = _INTEGER.fullmatch(text)
    if found is None:
        return None
    value = -int(found[2]) if found[1] == "-" else int(found[2])
    return value if -(2**63) <= value < 2**63 else None


def _holds(requirement: Requirement, labels: Mapping[str, str]) -> bool:
    value = labels.get(requirement.key)
    match requirement.operator:
        case "In":
            return value is not None and value in requirement.values
        case "NotIn":
            return value is None or value not in requirement.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt" as operator:
            return _compares(operator, value, requirement.values[0])
        case unknown:
            raise ProblemError(f"requirement on {requirement.key}: unknown operator {unknown!r}")


def _compares(operator: str, value: str | None, limit: str) -> bool:
    """False where one of them is not an integer, which the API server accepts: such a requirement never holds."""
    mine, theirs = parse_integer(value or ""), parse_integer(limit)
    if mine is None or theirs is None:
        return False
    return mine > theirs if operator == "Gt" else mine < theirs


def label_keys(selectors: Iterable[Selector | None]) -> set[str]:
    return {each.key for selector in selectors if selector is not None for each in selector.requirements}


def selector_text(selector: Selector | None) -> str:
    """As kubectl writes selectors: `app=web,tier in (a,b)`."""
    if selector is None:
        return "no pods"
    return ",".join(map(requirement_text, selector.requirements)) or "all pods"


def requirement_text(requirement: Requirement) -> str:
    values = ",".join(requirement.values)
    match requirement.operator:
        case "In":
            several = len(requirement.values) > 1
            return f"{requirement.key} in ({values})" if several else f"{requirement.key}={values}"
        case "NotIn":
            return f"{requirement.key} notin ({values})"
        case "DoesNotExist":
            return f"!{requirement.key}"
        case "Gt" | "Lt" as operator:
            return f"{requirement.key} {'>' if operator == 'Gt' else '<'} {values}"
        case _:
            return requirement.key
