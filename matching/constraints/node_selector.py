"""nodeSelector: every label has to be there with exactly that value."""

from __future__ import annotations

from matching.problem import Node, Rules


def veto(rules: Rules, node: Node) -> str:
    for key, value in rules.node_selector:
        if node.labels.get(key) != value:
            return f"node selector {key}={value} does not match"
    return ""
