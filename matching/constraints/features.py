"""Declared features: what the kubelet has to be able to do for a pod."""

from __future__ import annotations

from matching.problem import Node, Rules


def veto(rules: Rules, node: Node) -> str:
    missing = [name for name in rules.features if name not in node.features]
    return f"the node does not declare {', '.join(missing)}" if missing else ""
