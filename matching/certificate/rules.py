"""The rules between a pod and a node once more, read straight from the Kubernetes API reference."""

from __future__ import annotations

from matching.problem import Node, Requirement, Rules, Taint, Term

_CORDONED = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")


def may_come(rules: Rules, node: Node) -> bool:
    taints = [taint for taint in node.taints if taint.effect in {"NoSchedule", "NoExecute"}]
    if node.unschedulable:
        taints.append(_CORDONED)
    return (
        node.ready
        and not any(_repels(taint, rules) for taint in taints)
        and set(rules.node_selector) <= set(node.labels.items())
        and (rules.node_affinity is None or any(_matches(term, node) for term in rules.node_affinity))
    )


def may_stay(rules: Rules, node: Node) -> bool:
    return not any(_repels(taint, rules) for taint in node.taints if taint.effect == "NoExecute")


def _repels(taint: Taint, rules: Rules) -> bool:
    for each in rules.tolerations:
        same_effect = not each.effect or each.effect == taint.effect
        same_key = not each.key or each.key == taint.key
        same_value = each.operator == "Exists" or (each.operator in {"", "Equal"} and each.value == taint.value)
        if same_effect and same_key and same_value:
            return False
    return True


def _matches(term: Term, node: Node) -> bool:
    about = [(each, node.labels.get(each.key)) for each in term.expressions]
    about += [(each, node.name if each.key == "metadata.name" else None) for each in term.fields]
    return bool(about) and all(_satisfied(requirement, value) for requirement, value in about)


def _satisfied(requirement: Requirement, value: str | None) -> bool:
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
