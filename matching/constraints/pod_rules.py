"""Rules that nobody can mean: told with the pod that has them, before anything is planned."""

from __future__ import annotations

from collections.abc import Iterator

from matching.constraints import node_affinity
from matching.problem import ProblemError, Rules, Selector, Spread

_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")


def check(owner: str, rules: Rules) -> None:
    """`owner` is how the message begins: `pod shop/web`."""
    wished = tuple(term for _, term in rules.preferred.nodes)
    for terms in (rules.node_affinity or (), *rules.volumes, wished):
        node_affinity.check(owner, terms)
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
    """What for, over which topology key, and the selector itself."""
    wishes = rules.preferred
    near = (*rules.pod_affinity, *(term for _, term in wishes.with_pods))
    apart = (*rules.pod_anti_affinity, *(term for _, term in wishes.apart_from))
    for what, terms in (("pod affinity", near), ("pod anti-affinity", apart)):
        for term in terms:
            yield what, term.topology_key, term.selector
            yield f"{what}, namespaces", term.topology_key, term.namespace_selector
    for spread in (*rules.spread, *wishes.spread):
        yield "topology spread", spread.topology_key, spread.selector


def _check_selector(place: str, selector: Selector | None) -> None:
    for requirement in selector.requirements if selector is not None else ():
        operator, values = requirement.operator, requirement.values
        if operator not in _OPERATORS:
            raise ProblemError(f"{place} on {requirement.key}: unknown operator {operator!r}")
        if (operator in ("In", "NotIn")) != bool(values):
            needed = "at least one value" if not values else "no values"
            raise ProblemError(f"{place} on {requirement.key}: {operator} takes {needed}")


def _check_spread(owner: str, spread: Spread) -> None:
    for what, number in (("maxSkew", spread.max_skew), ("minDomains", spread.min_domains)):
        if number < 1:
            raise ProblemError(f"{owner}: topology spread over {spread.topology_key}: {what} is {number}, at least 1")
