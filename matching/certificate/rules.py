"""The rules between a pod and a node once more, read straight from the Kubernetes API reference."""

from __future__ import annotations

from matching.problem import Node, Requirement, Rules, Taint, Term

_ZONE_PREFIXES = ("failure-domain.beta.kubernetes.io", "topology.kubernetes.io")
_CORDONED = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")


def may_come(rules: Rules, node: Node) -> bool:
    return (
        node.ready
        and not (node.unschedulable and repels(_CORDONED, rules))
        and not repelled(rules, node)
        and admits_by_labels(rules, node)
        and all(any(matches(term, node) for term in terms) for terms in rules.volumes)
        and _reaches_zones(rules, node)
    )


def admits_by_labels(rules: Rules, node: Node) -> bool:
    """nodeSelector and required node affinity."""
    affine = rules.node_affinity is None or any(matches(term, node) for term in rules.node_affinity)
    return affine and set(rules.node_selector) <= set(node.labels.items())


def repelled(rules: Rules, node: Node) -> bool:
    """By a taint that forbids coming."""
    return any(repels(taint, rules) for taint in node.taints if taint.effect in {"NoSchedule", "NoExecute"})


def _reaches_zones(rules: Rules, node: Node) -> bool:
    """A node that has any zone or region label must have those of the volumes; an old name may be written anew."""
    if not any(f"{prefix}/{what}" in node.labels for prefix in _ZONE_PREFIXES for what in ("zone", "region")):
        return True
    return all(
        node.labels.get(key, node.labels.get(key.replace(*_ZONE_PREFIXES))) in values
        for key, values in rules.volume_zones
    )


def may_stay(rules: Rules, node: Node) -> bool:
    return not any(repels(taint, rules) for taint in node.taints if taint.effect == "NoExecute")


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
    digits = value[1:] if value[:1] in {"+", "-"} else value
    if not (digits.isascii() and digits.isdigit() and -(2**63) <= int(value) < 2**63):
        return False
    difference = int(value) - int(requirement.values[0])
    return difference > 0 if requirement.operator == "Gt" else difference < 0
