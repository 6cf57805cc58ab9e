"""A node that is not Ready takes no new pods."""

from __future__ import annotations

from matching.problem import Node, Rules


def veto(_rules: Rules, node: Node) -> str:
    return "" if node.ready else "not ready"
