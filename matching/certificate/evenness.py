"""One topology spread constraint as the verifier keeps it: how many pods it counts in each place."""

from __future__ import annotations

from collections.abc import Mapping

from matching.certificate.crowd import Look, selected
from matching.certificate.rules import admits_by_labels, repelled
from matching.problem import Node, Spread


class Table:
    def __init__(self, owner: Look, spread: Spread, nodes: Mapping[str, Node]) -> None:
        self.spread = spread
        self._owner = owner
        self._place = {
            name: node.labels[spread.topology_key] for name, node in nodes.items() if looked_at(owner, spread, node)
        }
        self._counts = dict.fromkeys(self._place.values(), 0)
        self._counted: dict[Look, bool] = {}

    def counts(self, look: Look) -> bool:
        known = self._counted.get(look)
        if known is None:
            known = self._counted[look] = counted(self._owner, self.spread, look)
        return known

    def count(self, look: Look, node: str | None, by: int) -> None:
        if node in self._place and self.counts(look):
            self._counts[self._place[node]] += by

    def skew(self) -> int:
        return max(self._counts.values(), default=0) - self._fewest()

    def takes(self, look: Look, node: Node) -> bool:
        """The look's own constraint, the pod itself not counted anywhere."""
        value = node.labels.get(self.spread.topology_key)
        if value is None:
            return False
        itself = int(selected(self.spread.selector, dict(look.labels)))
        return self._counts.get(value, 0) + itself - self._fewest() <= self.spread.max_skew

    def _fewest(self) -> int:
        enough = self._counts and len(self._counts) >= self.spread.min_domains
        return min(self._counts.values()) if enough else 0


def counted(owner: Look, spread: Spread, look: Look) -> bool:
    """Pods of the same namespace that are not being deleted; an empty selector counts nobody."""
    selector = spread.selector
    staying = look.namespace == owner.namespace and not look.leaving
    return staying and selector is not None and bool(selector.requirements) and selected(selector, dict(look.labels))


def looked_at(owner: Look, spread: Spread, node: Node) -> bool:
    return (
        all(each.topology_key in node.labels for each in owner.rules.spread)
        and (not spread.honor_affinity or admits_by_labels(owner.rules, node))
        and (not spread.honor_taints or not repelled(owner.rules, node))
    )
