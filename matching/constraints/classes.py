"""Rules between a pod and a node, judged once per class: pods with equal rules are alike, and so are nodes that
those rules cannot tell apart. A class is judged when somebody asks for the first time: pods that never choose cost
nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from matching.constraints import node_affinity, node_selector, pod_rules, readiness, taints, volumes
from matching.constraints.node_groups import Alike, NodeGroups
from matching.problem import Node, Pod, Rules
from matching.shapes import Ints, Mask

VETOES = (readiness.veto, taints.veto, node_selector.veto, node_affinity.veto, volumes.affinity_veto, volumes.zone_veto)


@dataclass(frozen=True, slots=True)
class Row:
    """What the rules of one class of pods say about the nodes."""

    admitted: Mask
    """By node; not to be written to."""
    group: Ints
    """By node: nodes of one group get the same answer."""
    reasons: tuple[str, ...]
    """By group: why a newcomer is refused; empty when it is not."""
    tolerated: Mask
    """By node: whether a pod that runs there may stay."""


class Verdicts:
    def __init__(self, pod_class: Ints, all_rules: tuple[Rules, ...], nodes: Sequence[Node]) -> None:
        self.pod_class = pod_class
        self.all_rules = all_rules
        """By class of pods."""
        self._nodes = nodes
        self._groups = NodeGroups(nodes)
        self._rows: dict[int, Row] = {}

    def row(self, pod_class: int) -> Row:
        found = self._rows.get(pod_class)
        if found is None:
            found = self._rows[pod_class] = self._judged(self.all_rules[pod_class])
        return found

    def admits(self, pod: int) -> Mask:
        """Every node; not to be written to."""
        return self.row(int(self.pod_class[pod])).admitted

    def admits_each(self, pods: Ints) -> Mask:
        """One row per pod."""
        classes, place = np.unique(self.pod_class[pods], return_inverse=True)
        rows: Mask = np.array([self.row(pod_class).admitted for pod_class in classes.tolist()])[place]
        return rows

    def may_stay(self, pods: Ints, nodes: Ints) -> Mask:
        """Pod by pod on the node beside it."""
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

    def leaving(self, pod: int, node: int) -> str:
        """Why a pod that runs there may not stay; empty when it may."""
        return taints.drives_out(self.all_rules[int(self.pod_class[pod])], self._nodes[node])

    def _judged(self, rules: Rules) -> Row:
        alike = alike_for(rules, self._groups)
        reasons = tuple(_first_veto(rules, node) for node in alike.models)
        admitted = np.array([not reason for reason in reasons], dtype=bool)[alike.group]
        tolerated = np.array([not taints.drives_out(rules, node) for node in alike.models], dtype=bool)[alike.group]
        admitted.flags.writeable = False
        return Row(admitted, alike.group, reasons, tolerated)


def judge(pods: Sequence[Pod], nodes: Sequence[Node]) -> Verdicts:
    pod_class, all_rules = rule_classes(pods)
    _, firsts = np.unique(pod_class, return_index=True)
    for first in firsts.tolist():
        pod_rules.check(f"pod {pods[first].key}", pods[first].rules)
    return Verdicts(pod_class, all_rules, nodes)


def rule_classes(pods: Sequence[Pod]) -> tuple[Ints, tuple[Rules, ...]]:
    """Of each pod the class of its rules, and the rules of each class. Shared values are known by identity."""
    known: dict[int, int] = {}
    index: dict[Rules, int] = {}
    classes = []
    for pod in pods:
        found = known.get(id(pod.rules))
        if found is None:
            found = known[id(pod.rules)] = index.setdefault(pod.rules, len(index))
        classes.append(found)
    return np.array(classes, dtype=np.int64), tuple(index)


def alike_for(rules: Rules, groups: NodeGroups) -> Alike:
    """The groups of nodes that these rules cannot tell apart."""
    return groups.alike(_label_keys(rules), by_name=_by_name(rules))


def _first_veto(rules: Rules, node: Node) -> str:
    return next((reason for veto in VETOES if (reason := veto(rules, node))), "")


def _label_keys(rules: Rules) -> set[str]:
    """The labels that those rules look at."""
    keys = {key for key, _ in rules.node_selector} | volumes.zone_keys(rules)
    for terms in (rules.node_affinity or (), *rules.volumes):
        keys |= {requirement.key for term in terms for requirement in term.expressions}
    return keys


def _by_name(rules: Rules) -> bool:
    return any(term.fields for terms in (rules.node_affinity or (), *rules.volumes) for term in terms)
