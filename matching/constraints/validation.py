"""Rejects rules that the API server would refuse. The error names the pod that has them."""

from __future__ import annotations

from collections.abc import Iterator

from matching.constraints.node_affinity import NAME_FIELD
from matching.problem import ProblemError, Requirement, Rules, Selector, Spread, Term

_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")
_NODE_OPERATORS = (*_OPERATORS, "Gt", "Lt")


def rules_problem(rules: Rules) -> str:
    """What `check` would raise, as text; empty for rules that can be evaluated."""
    try:
        check("", rules)
    except ProblemError as error:
        return str(error).removeprefix(": ")
    return ""


def selector_problem(selector: Selector) -> str:
    """Why the selector cannot be evaluated; empty when it can."""
    try:
        _check_selector("selector", selector)
    except ProblemError as error:
        return str(error)
    return ""


def check(owner: str, rules: Rules) -> None:
    """`owner` is how the message begins: `pod shop/web`."""
    preferred = tuple(term for _, term in rules.preferred.nodes)
    for terms in (rules.node_affinity or (), *rules.volumes, preferred):
        _check_node_terms(owner, terms)
    for what, key, selector in _selectors(rules):
        if not key:
            raise ProblemError(f"{owner}: {what} without a topology key")
        _check_selector(f"{owner}: {what}", selector)
    for spread in (*rules.spread, *rules.preferred.spread):
        _check_spread(owner, spread)
    for port in rules.ports:
        if not 0 < port.port < 65536:
            raise ProblemError(f"{owner}: host port {port.port}; it must be between 1 and 65535")
    for weight, _ in (*rules.preferred.nodes, *rules.preferred.with_pods, *rules.preferred.apart_from):
        if weight < 1:
            raise ProblemError(f"{owner}: a preference has weight {weight}; it must be at least 1")


def _selectors(rules: Rules) -> Iterator[tuple[str, str, Selector | None]]:
    """What each selector is for, its topology key, and the selector."""
    soft = rules.preferred
    near = (*rules.pod_affinity, *(term for _, term in soft.with_pods))
    apart = (*rules.pod_anti_affinity, *(term for _, term in soft.apart_from))
    for what, terms in (("pod affinity", near), ("pod anti-affinity", apart)):
        for term in terms:
            yield what, term.topology_key, term.selector
            yield f"{what}, namespaces", term.topology_key, term.namespace_selector
    for spread in (*rules.spread, *soft.spread):
        yield "topology spread", spread.topology_key, spread.selector


def _check_selector(where: str, selector: Selector | None) -> None:
    for requirement in selector.requirements if selector is not None else ():
        operator, values = requirement.operator, requirement.values
        if operator not in _OPERATORS:
            raise ProblemError(f"{where} on {requirement.key}: unknown operator {operator!r}")
        if (operator in ("In", "NotIn")) != bool(values):
            needed = "at least one value" if not values else "no values"
            raise ProblemError(f"{where} on {requirement.key}: {operator} takes {needed}")


def _check_spread(owner: str, spread: Spread) -> None:
    for what, number in (("maxSkew", spread.max_skew), ("minDomains", spread.min_domains)):
        if number < 1:
            raise ProblemError(f"{owner}: topology spread over {spread.topology_key}: {what} is {number}, at least 1")


def _check_node_terms(owner: str, terms: tuple[Term, ...]) -> None:
    for term in terms:
        for requirement in term.expressions:
            _check_requirement(owner, requirement)
        for requirement in term.fields:
            _check_field(owner, requirement)


def _check_requirement(owner: str, requirement: Requirement) -> None:
    where = f"{owner}: node affinity on {requirement.key}"
    operator, values = requirement.operator, requirement.values
    if operator not in _NODE_OPERATORS:
        raise ProblemError(f"{where}: unknown operator {operator!r}; known are {', '.join(_NODE_OPERATORS)}")
    if operator in ("In", "NotIn") and not values:
        raise ProblemError(f"{where}: {operator} needs at least one value")
    if operator in ("Exists", "DoesNotExist") and values:
        raise ProblemError(f"{where}: {operator} takes no values")
    if operator in ("Gt", "Lt") and len(values) != 1:
        raise ProblemError(f"{where}: {operator} needs exactly one value, not {list(values)}")


def _check_field(owner: str, requirement: Requirement) -> None:
    where = f"{owner}: node affinity matchFields"
    if requirement.key != NAME_FIELD:
        raise ProblemError(f"{where}: unknown field {requirement.key!r}; only {NAME_FIELD} can be matched")
    if requirement.operator not in ("In", "NotIn") or len(requirement.values) != 1:
        raise ProblemError(f"{where}: {NAME_FIELD} needs In or NotIn with exactly one value")
