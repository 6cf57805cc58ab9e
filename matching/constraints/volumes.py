"""Bound volumes: each may say by its node affinity, or by its zone and region labels, from where it can be reached."""

from __future__ import annotations

from matching.constraints.node_affinity import any_term_holds
from matching.problem import Node, Rules

_STABLE_NAMES = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
}
ZONE_LABELS = (*_STABLE_NAMES, *_STABLE_NAMES.values())


def affinity_veto(rules: Rules, node: Node) -> str:
    if all(any_term_holds(terms, node) for terms in rules.volumes):
        return ""
    return "a volume cannot be reached from there"


def zone_veto(rules: Rules, node: Node) -> str:
    """A node without any zone or region label takes every volume: a cluster of one zone may not bother."""
    if not rules.volume_zones or not any(label in node.labels for label in ZONE_LABELS):
        return ""
    for key, values in rules.volume_zones:
        value = node.labels.get(key, node.labels.get(_STABLE_NAMES.get(key, key)))
        if value not in values:
            return f"a volume is in {key.rpartition('/')[2]} {' or '.join(values)}"
    return ""


def zone_keys(rules: Rules) -> frozenset[str]:
    """The node labels that decide, for rules that have such volumes."""
    return frozenset(ZONE_LABELS) if rules.volume_zones else frozenset()
