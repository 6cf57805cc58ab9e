"""Constraints between a pod and a node (`VETOES`), evaluated once per class of pods with equal rules and group of nodes
that those rules cannot tell apart. A class is evaluated on first use.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from matching.array_types import NOWHERE, Ints, Mask
from matching.constraints import features, node_affinity, taints, validation, volumes
from matching.problem import Node, Pod, Rules


@dataclass(frozen=True, slots=True)
class Domains:
    """The topology domains that a node label makes."""

    key: str
    of_node: Ints
    """Index of the node's value; NOWHERE for a node without the label."""
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Grouping:
    group: Ints
    """Of each node."""
    examples: tuple[Node, ...]
    """One node of each group."""


class NodeIndex:
    """Nodes by their labels, so that nodes that some rules cannot tell apart are evaluated once."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._nodes = nodes
        self._domains: dict[str, Domains] = {}
        self._groupings: dict[tuple[tuple[str, ...], bool], Grouping] = {}
        self._states = _numbered((node.ready, node.unschedulable, node.taints, node.features) for node in nodes)

    def domains(self, key: str) -> Domains:
        found = self._domains.get(key)
        if found is None:
            index: dict[str, int] = {}
            values = (node.labels.get(key) for node in self._nodes)
            numbers = [NOWHERE if value is None else index.setdefault(value, len(index)) for value in values]
            found = self._domains[key] = Domains(key, np.array(numbers, dtype=np.int64), tuple(index))
        return found

    def grouping(self, keys: Iterable[str], by_name: bool = False) -> Grouping:
        """Groups of nodes with the same state, taints and features and the same values of these labels."""
        wanted = (tuple(sorted(set(keys))), by_name)
        found = self._groupings.get(wanted)
        if found is None:
            found = self._groupings[wanted] = self._grouped(*wanted)
        return found

    def _grouped(self, keys: tuple[str, ...], by_name: bool) -> Grouping:
        group = np.arange(len(self._nodes), dtype=np.int64) if by_name else self._states
        for key in () if by_name else keys:
            domains = self.domains(key)
            group = np.unique(group * (len(domains.values) + 1) + domains.of_node + 1, return_inverse=True)[1]
        _, firsts = np.unique(group, return_index=True)
        return Grouping(group.astype(np.int64), tuple(self._nodes[first] for first in firsts.tolist()))


def _numbered(keys: Iterable[Hashable]) -> Ints:
    index: dict[Hashable, int] = {}
    return np.array([index.setdefault(key, len(index)) for key in keys], dtype=np.int64)


VETOES = (
    taints.readiness_veto,
    taints.veto,
    node_affinity.selector_veto,
    node_affinity.affinity_veto,
    volumes.affinity_veto,
    volumes.zone_veto,
    features.veto,
    node_affinity.avoided_veto,
)


@dataclass(frozen=True, slots=True)
class RuleRow:
    """What one class of pods may use."""

    admitted: Mask
    """By node. Read-only."""
    group: Ints
    """By node: nodes of one group get the same answer."""
    reasons: tuple[str, ...]
    """By group: why a new pod is refused; empty when it is not."""
    tolerated: Mask
    """By node: whether a pod that runs there may stay."""


class NodeRules:
    def __init__(self, pod_class: Ints, all_rules: tuple[Rules, ...], nodes: Sequence[Node]) -> None:
        self.pod_class = pod_class
        self.all_rules = all_rules
        """By class of pods."""
        self._nodes = nodes
        self._index = NodeIndex(nodes)
        self._rows: dict[int, RuleRow] = {}

    def row(self, pod_class: int) -> RuleRow:
        found = self._rows.get(pod_class)
        if found is None:
            found = self._rows[pod_class] = self._evaluated(self.all_rules[pod_class])
        return found

    def admits(self, pod: int) -> Mask:
        """By node. Read-only."""
        return self.row(int(self.pod_class[pod])).admitted

    def admits_each(self, pods: Ints) -> Mask:
        """One row per pod."""
        classes, index = np.unique(self.pod_class[pods], return_inverse=True)
        rows: Mask = np.array([self.row(pod_class).admitted for pod_class in classes.tolist()])[index]
        return rows

    def may_stay(self, pods: Ints, nodes: Ints) -> Mask:
        """For each pod, whether it may stay on the node at the same position."""
        kept: Mask = np.ones(len(pods), dtype=bool)
        classes = self.pod_class[pods]
        for pod_class in np.unique(classes).tolist():
            tolerated = self.row(pod_class).tolerated
            if not tolerated.all():
                of_class = classes == pod_class
                kept[of_class] = tolerated[nodes[of_class]]
        return kept

    def reason(self, pod: int, node: int) -> str:
        row = self.row(int(self.pod_class[pod]))
        return row.reasons[int(row.group[node])]

    def groups(self, pod: int) -> Ints:
        """By node: nodes of one group get the same answer from this pod's rules."""
        return self.row(int(self.pod_class[pod])).group

    def eviction_reason(self, pod: int, node: int) -> str:
        """Why a pod that runs there may not stay; empty when it may."""
        return taints.eviction_reason(self.all_rules[int(self.pod_class[pod])], self._nodes[node])

    def _evaluated(self, rules: Rules) -> RuleRow:
        grouping = grouping_for(rules, self._index)
        reasons = tuple(_first_veto(rules, node) for node in grouping.examples)
        admitted = np.array([not reason for reason in reasons], dtype=bool)[grouping.group]
        tolerated = np.array([not taints.eviction_reason(rules, node) for node in grouping.examples], dtype=bool)[
            grouping.group
        ]
        admitted.flags.writeable = False
        return RuleRow(admitted, grouping.group, reasons, tolerated)


def node_rules(pod_class: Ints, all_rules: tuple[Rules, ...], pods: Sequence[Pod], nodes: Sequence[Node]) -> NodeRules:
    """`pod_class`: by pod the position of its rules in `all_rules`."""
    _, firsts = np.unique(pod_class, return_index=True)
    for first in firsts.tolist():
        validation.check(f"pod {pods[first].key}", pods[first].rules)
    return NodeRules(pod_class, all_rules, nodes)


def grouping_for(rules: Rules, index: NodeIndex) -> Grouping:
    """The groups of nodes that these rules cannot tell apart."""
    return index.grouping(_label_keys(rules), by_name=_by_name(rules))


def _first_veto(rules: Rules, node: Node) -> str:
    return next((reason for veto in VETOES if (reason := veto(rules, node))), "")


def _label_keys(rules: Rules) -> set[str]:
    """The labels that these rules read."""
    keys = {key for key, _ in rules.node_selector} | volumes.zone_keys(rules)
    for terms in (rules.node_affinity or (), *rules.volumes):
        keys |= {requirement.key for term in terms for requirement in term.expressions}
    return keys


def _by_name(rules: Rules) -> bool:
    return bool(rules.avoided) or any(
        term.fields for terms in (rules.node_affinity or (), *rules.volumes) for term in terms
    )
