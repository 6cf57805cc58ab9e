"""Label selectors and node selectors, which several kinds of objects contain."""

from __future__ import annotations

from msgspec import Struct

from matching.problem import Requirement, Selector, Term


class WireRequirement(Struct, gc=False):
    key: str
    operator: str
    values: list[str] | None = None


class WireSelector(Struct, rename="camel", gc=False):
    match_labels: dict[str, str] | None = None
    match_expressions: list[WireRequirement] | None = None


class WireTerm(Struct, rename="camel", gc=False):
    match_expressions: list[WireRequirement] | None = None
    match_fields: list[WireRequirement] | None = None


class WireNodeSelector(Struct, rename="camel", gc=False):
    node_selector_terms: list[WireTerm] | None = None


def requirements(found: list[WireRequirement] | None) -> tuple[Requirement, ...]:
    return tuple(Requirement(each.key, each.operator, tuple(each.values or ())) for each in found or ())


def selector(wire: WireSelector) -> Selector:
    labels = (Requirement(key, "In", (value,)) for key, value in sorted((wire.match_labels or {}).items()))
    return Selector((*labels, *requirements(wire.match_expressions)))


def node_term(wire: WireTerm) -> Term:
    return Term(requirements(wire.match_expressions), requirements(wire.match_fields))


def node_terms(wire: WireNodeSelector) -> tuple[Term, ...]:
    return tuple(node_term(term) for term in wire.node_selector_terms or ())
