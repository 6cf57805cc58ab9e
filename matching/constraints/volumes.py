"""Bound PVs: their node affinity, or their zone and region labels, limit the nodes that can reach them."""

from __future__ import annotations

from matching.constraints.node_affinity import any_term_matches
from matching.problem import Node, Rules

_STABLE_NAMES = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
}

ZONE_LABELS = (*_STABLE_NAMES, *_STABLE_NAMES.values())


def affinity_veto(rules: Rules, node: Node) -> str:
    if all(any_term_matches(terms, node) for terms in rules.volumes):
        return ""
    return "a volume cannot be reached from there"


def zone_veto(rules: Rules, node: Node) -> str:
    """A node without any zone or region label takes every volume, as in a cluster of a single zone."""
    if not rules.volume_zones or not any(label in node.labels for label in ZONE_LABELS):
        return ""
    for key, values in rules.volume_zones:
        value = node.labels.get(key, node.labels.get(_STABLE_NAMES.get(key, key)))
        if value not in values:
            return f"a volume is in {key.rpartition('/')[2]} {' or '.join(values)}"
    return ""


def zone_keys(rules: Rules) -> frozenset[str]:
    """The node labels that `zone_veto` reads for these rules."""
    return frozenset(ZONE_LABELS) if rules.volume_zones else frozenset()
