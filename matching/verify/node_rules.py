"""A pod's own rules about nodes, read from the Kubernetes API reference: readiness, cordons, taints, nodeSelector, node
affinity, volumes and declared features."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence

import numpy as np

from matching.problem import Node, Requirement, Rules, Selector, Taint, Term
from matching.verify.placement import Flags, Ints

_ZONE_PREFIXES = ("failure-domain.beta.kubernetes.io", "topology.kubernetes.io")
_ZONE_LABELS = tuple(f"{prefix}/{what}" for prefix in _ZONE_PREFIXES for what in ("zone", "region"))
_CORDONED = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
_REMOVAL = ("ToBeDeletedByClusterAutoscaler", "DeletionCandidateOfClusterAutoscaler", "karpenter.sh/disrupted")


def may_come(rules: Rules, node: Node) -> bool:
    return (
        node.ready
        and not (node.unschedulable and repels(_CORDONED, rules))
        and not repelled(rules, node)
        and admits_by_labels(rules, node)
        and all(any(matches(term, node) for term in terms) for terms in rules.volumes)
        and _reaches_zones(rules, node)
        and set(rules.features) <= set(node.features)
        and node.name not in rules.avoided
    )


def closed_to_moves(node: Node) -> bool:
    """No running pod moves to a node without fresh metrics, to a cordoned one, or to one that an autoscaler is about to
    remove, whatever it tolerates."""
    marked = any(taint.key == _CORDONED.key and taint.effect != "PreferNoSchedule" for taint in node.taints)
    return node.unschedulable or marked or about_to_be_removed(node) or not node.measured


def about_to_be_removed(node: Node) -> bool:
    return any(taint.key in _REMOVAL for taint in node.taints)


def may_stay(rules: Rules, node: Node) -> bool:
    return not any(repels(taint, rules) for taint in node.taints if taint.effect == "NoExecute")


def admits_by_labels(rules: Rules, node: Node) -> bool:
    """nodeSelector and required node affinity."""
    affine = rules.node_affinity is None or any(matches(term, node) for term in rules.node_affinity)
    return affine and set(rules.node_selector) <= set(node.labels.items())


def repelled(rules: Rules, node: Node) -> bool:
    """By a taint that forbids scheduling."""
    return any(repels(taint, rules) for taint in node.taints if taint.effect in {"NoSchedule", "NoExecute"})


def repels(taint: Taint, rules: Rules) -> bool:
    for each in rules.tolerations:
        same_effect = not each.effect or each.effect == taint.effect
        same_key = not each.key or each.key == taint.key
        same_value = each.operator == "Exists" or (each.operator in {"", "Equal"} and each.value == taint.value)
        if same_effect and same_key and same_value:
            return False
    return True


def matches(term: Term, node: Node) -> bool:
    about = [(each, node.labels.get(each.key)) for each in term.expressions]
    about += [(each, node.name if each.key == "metadata.name" else None) for each in term.fields]
    return bool(about) and all(satisfied(requirement, value) for requirement, value in about)


def satisfied(requirement: Requirement, value: str | None) -> bool:
    if requirement.operator in {"NotIn", "DoesNotExist"}:
        return value is None or (requirement.operator == "NotIn" and value not in requirement.values)
    if value is None:
        return False
    if requirement.operator == "Exists":
        return True
    if requirement.operator == "In":
        return value in requirement.values
    number, limit = _number(value), _number(requirement.values[0])
    if number is None or limit is None:
        return False
    return number > limit if requirement.operator == "Gt" else number < limit


def _number(text: str) -> int | None:
    """A whole number as Go reads it, if it has at most 64 bits."""
    digits = text[1:] if text[:1] in {"+", "-"} else text
    if not (digits.isascii() and digits.isdigit() and len(digits.lstrip("0")) < 20):
        return None
    number = int(digits.lstrip("0") or "0") * (-1 if text[0] == "-" else 1)
    return number if -(2**63) <= number < 2**63 else None


def selected(selector: Selector | None, labels: Mapping[str, str]) -> bool:
    if selector is None:
        return False
    return all(satisfied(requirement, labels.get(requirement.key)) for requirement in selector.requirements)


def _reaches_zones(rules: Rules, node: Node) -> bool:
    """A node that has any zone or region label must have those of the volumes; an old key may have its new name."""
    if not any(label in node.labels for label in _ZONE_LABELS):
        return True
    return all(
        node.labels.get(key, node.labels.get(key.replace(*_ZONE_PREFIXES))) in values
        for key, values in rules.volume_zones
    )


class NodeGroups:
    """Nodes that the rules of a pod cannot tell apart: a rule is evaluated for one node of each group."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._nodes = nodes
        self._groups: dict[tuple[frozenset[str], bool], tuple[Ints, list[Node]]] = {}

    def evaluate(self, rules: Rules, check: Callable[[Rules, Node], bool]) -> Flags:
        """By node."""
        reads = _what_they_read(rules)
        if reads not in self._groups:
            self._groups[reads] = self._grouped(*reads)
        group, models = self._groups[reads]
        answers: Flags = np.array([check(rules, node) for node in models], dtype=bool)[group]
        return answers

    def _grouped(self, keys: frozenset[str], by_name: bool) -> tuple[Ints, list[Node]]:
        wanted, seen, models, group = sorted(keys), dict[Hashable, int](), list[Node](), list[int]()
        for node in self._nodes:
            labels = tuple(node.labels.get(key) for key in wanted)
            read = (labels, node.ready, node.unschedulable, node.taints, node.features, node.name if by_name else "")
            if read not in seen:
                seen[read] = len(models)
                models.append(node)
            group.append(seen[read])
        return np.array(group, dtype=int), models


def _what_they_read(rules: Rules) -> tuple[frozenset[str], bool]:
    """The labels that the rules mention, and whether they read node names."""
    terms = [term for choice in (rules.node_affinity or (), *rules.volumes) for term in choice]
    keys = {key for key, _ in rules.node_selector} | {each.key for term in terms for each in term.expressions}
    if rules.volume_zones:
        keys |= {key for key, _ in rules.volume_zones} | set(_ZONE_LABELS)
    return frozenset(keys), bool(rules.avoided) or any(term.fields for term in terms)
