"""Nodes that a pod's own rules cannot tell apart: one of them answers for all."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

import numpy as np

from matching.certificate.view import Flags, Ints
from matching.problem import Node, Rules

_PLACES = tuple(
    f"{prefix}/{what}"
    for prefix in ("failure-domain.beta.kubernetes.io", "topology.kubernetes.io")
    for what in ("zone", "region")
)


class Lookalikes:
    def __init__(self, nodes: Sequence[Node]) -> None:
        self._nodes = nodes
        self._groups: dict[tuple[frozenset[str], bool], tuple[Ints, list[Node]]] = {}

    def ask(self, rules: Rules, question: Callable[[Rules, Node], bool]) -> Flags:
        """By node."""
        look = _what_it_sees(rules)
        if look not in self._groups:
            self._groups[look] = self._grouped(*look)
        group, models = self._groups[look]
        answers: Flags = np.array([question(rules, node) for node in models], dtype=bool)[group]
        return answers

    def _grouped(self, keys: frozenset[str], by_name: bool) -> tuple[Ints, list[Node]]:
        wanted, seen, models, group = sorted(keys), dict[Hashable, int](), list[Node](), list[int]()
        for node in self._nodes:
            labels = tuple(node.labels.get(key) for key in wanted)
            look = (labels, node.ready, node.unschedulable, node.taints, node.name if by_name else "")
            if look not in seen:
                seen[look] = len(models)
                models.append(node)
            group.append(seen[look])
        return np.array(group, dtype=int), models


def _what_it_sees(rules: Rules) -> tuple[frozenset[str], bool]:
    """The labels that those rules mention, and whether they look at names."""
    terms = [term for choice in (rules.node_affinity or (), *rules.volumes) for term in choice]
    keys = {key for key, _ in rules.node_selector} | {each.key for term in terms for each in term.expressions}
    if rules.volume_zones:
        keys |= {key for key, _ in rules.volume_zones} | set(_PLACES)
    return frozenset(keys), any(term.fields for term in terms)
