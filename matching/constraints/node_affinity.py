"""Required node affinity: one term must hold; in a term all expressions and fields. An empty term never holds."""

from __future__ import annotations

import re
from collections.abc import Mapping

from matching.problem import Node, ProblemError, Requirement, Rules, Term

OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
NAME_FIELD = "metadata.name"

_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)


def veto(rules: Rules, node: Node) -> str:
    if rules.node_affinity is None or any_term_holds(rules.node_affinity, node):
        return ""
    return "node affinity does not match"


def any_term_holds(terms: tuple[Term, ...], node: Node) -> bool:
    return any(term_holds(term, node) for term in terms)


def check(owner: str, terms: tuple[Term, ...]) -> None:
    """What the API server would refuse cannot be judged: say whose it is and what is wrong."""
    for term in terms:
        for requirement in term.expressions:
            _check_requirement(owner, requirement)
        for requirement in term.fields:
            _check_field(owner, requirement)


def term_holds(term: Term, node: Node) -> bool:
    if not term.expressions and not term.fields:
        return False
    fields = {NAME_FIELD: node.name}
    return all(holds(each, node.labels) for each in term.expressions) and all(holds(e, fields) for e in term.fields)


def holds(requirement: Requirement, labels: Mapping[str, str]) -> bool:
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
        case "Gt":
            return value is not None and _is_integer(value) and int(value) > int(requirement.values[0])
        case "Lt":
            return value is not None and _is_integer(value) and int(value) < int(requirement.values[0])
        case unknown:
            raise ProblemError(f"node affinity on {requirement.key}: unknown operator {unknown!r}")


def _is_integer(text: str) -> bool:
    return _INTEGER.fullmatch(text) is not None and -(2**63) <= int(text) < 2**63


def _check_requirement(owner: str, requirement: Requirement) -> None:
    place = f"{owner}: node affinity on {requirement.key}"
    operator, values = requirement.operator, requirement.values
    if operator not in OPERATORS:
        raise ProblemError(f"{place}: unknown operator {operator!r}; known are {', '.join(OPERATORS)}")
    if operator in ("In", "NotIn") and not values:
        raise ProblemError(f"{place}: {operator} needs at least one value")
    if operator in ("Exists", "DoesNotExist") and values:
        raise ProblemError(f"{place}: {operator} takes no values")
    if operator in ("Gt", "Lt") and not (len(values) == 1 and _is_integer(values[0])):
        raise ProblemError(f"{place}: {operator} needs exactly one whole number, not {list(values)}")


def _check_field(owner: str, requirement: Requirement) -> None:
    place = f"{owner}: node affinity matchFields"
    if requirement.key != NAME_FIELD:
        raise ProblemError(f"{place}: unknown field {requirement.key!r}; only {NAME_FIELD} can be matched")
    if requirement.operator not in ("In", "NotIn") or len(requirement.values) != 1:
        raise ProblemError(f"{place}: {NAME_FIELD} needs In or NotIn with exactly one value")
