"""nodeSelector, required node affinity, and nodes that are avoided by name. Of an affinity one term has to match, in a
term all expressions and fields; an empty term matches no node."""

from __future__ import annotations

from matching.problem import Node, Rules, Term
from matching.selectors import matches

NAME_FIELD = "metadata.name"


def selector_veto(rules: Rules, node: Node) -> str:
    for key, value in rules.node_selector:
        if node.labels.get(key) != value:
            return f"node selector {key}={value} does not match"
    return ""


def affinity_veto(rules: Rules, node: Node) -> str:
    if rules.node_affinity is None or any_term_matches(rules.node_affinity, node):
        return ""
    return "node affinity does not match"


def avoided_veto(rules: Rules, node: Node) -> str:
    return "a move there did not help lately" if node.name in rules.avoided else ""


def any_term_matches(terms: tuple[Term, ...], node: Node) -> bool:
    return any(term_matches(term, node) for term in terms)


def term_matches(term: Term, node: Node) -> bool:
    if not term.expressions and not term.fields:
        return False
    return matches(term.expressions, node.labels) and matches(term.fields, {NAME_FIELD: node.name})
