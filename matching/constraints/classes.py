"""Rules judged once per class: pods with equal rules are alike, and so are nodes that no rule can tell apart."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from matching.arrays import Ints, Mask
from matching.constraints import node_affinity, node_selector, readiness, taints
from matching.problem import Node, Pod, Rules

VETOES = (readiness.veto, taints.veto, node_selector.veto, node_affinity.veto)


@dataclass(frozen=True, slots=True)
class Verdicts:
    """What the rules of each class of pods say about each class of nodes."""

    reasons: tuple[tuple[str, ...], ...]
    """[pod class][node class]: why a newcomer is refused; empty when it is not."""
    admitted: Mask
    driven_out: tuple[tuple[str, ...], ...]
    """[pod class][node class]: why a pod that runs there may not stay; empty when it may."""
    tolerates: Mask
    pod_class: Ints
    node_class: Ints

    def admits(self, pod: int) -> Mask:
        row: Mask = self.admitted[self.pod_class[pod]][self.node_class]
        return row

    def admits_each(self, pods: Ints) -> Mask:
        """One row per pod."""
        rows: Mask = self.admitted[self.pod_class[pods]][:, self.node_class]
        return rows

    def may_stay(self, pods: Ints, nodes: Ints) -> Mask:
        """Pod by pod on the node beside it."""
        stays: Mask = self.tolerates[self.pod_class[pods], self.node_class[nodes]]
        return stays

    def reason(self, pod: int, node: int) -> str:
        return self.reasons[int(self.pod_class[pod])][int(self.node_class[node])]

    def leaving(self, pod: int, node: int) -> str:
        return self.driven_out[int(self.pod_class[pod])][int(self.node_class[node])]


def judge(pods: Sequence[Pod], nodes: Sequence[Node]) -> Verdicts:
    rules_index: dict[Rules, int] = {}
    pod_class = np.array([rules_index.setdefault(pod.rules, len(rules_index)) for pod in pods], dtype=np.int64)
    _check(pods, pod_class)
    all_rules = tuple(rules_index)
    node_class, models = _node_classes(nodes, all_rules)
    reasons = tuple(tuple(_first_veto(rules, node) for node in models) for rules in all_rules)
    driven_out = tuple(tuple(taints.drives_out(rules, node) for node in models) for rules in all_rules)
    return Verdicts(
        reasons=reasons,
        admitted=_where_empty(reasons, len(models)),
        driven_out=driven_out,
        tolerates=_where_empty(driven_out, len(models)),
        pod_class=pod_class,
        node_class=node_class,
    )


def _where_empty(reasons: Sequence[Sequence[str]], columns: int) -> Mask:
    return np.array([[not reason for reason in row] for row in reasons], dtype=bool).reshape(len(reasons), columns)


def _first_veto(rules: Rules, node: Node) -> str:
    return next((reason for veto in VETOES if (reason := veto(rules, node))), "")


def _check(pods: Sequence[Pod], pod_class: Ints) -> None:
    _, firsts = np.unique(pod_class, return_index=True)
    for first in firsts:
        node_affinity.check(f"pod {pods[first].key}", pods[first].rules)


def _node_classes(nodes: Sequence[Node], all_rules: Sequence[Rules]) -> tuple[Ints, tuple[Node, ...]]:
    """Nodes are told apart only by what some rule looks at, so a thousand equal machines are one class."""
    keys = _label_keys(all_rules)
    by_name = any(term.fields for rules in all_rules for term in rules.node_affinity or ())
    models: dict[Hashable, Node] = {}
    index: dict[Hashable, int] = {}
    classes = []
    for node in nodes:
        labels = tuple(node.labels.get(key) for key in keys)
        look = (node.ready, node.unschedulable, node.taints, labels, node.name if by_name else "")
        models.setdefault(look, node)
        classes.append(index.setdefault(look, len(index)))
    return np.array(classes, dtype=np.int64), tuple(models.values())


def _label_keys(all_rules: Sequence[Rules]) -> tuple[str, ...]:
    selected = {key for rules in all_rules for key, _ in rules.node_selector}
    affine = {
        requirement.key for rules in all_rules for term in rules.node_affinity or () for requirement in term.expressions
    }
    return tuple(sorted(selected | affine))
