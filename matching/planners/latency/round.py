"""What a round knows: measurements, visited nodes, round trips by node."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from matching.problem import Latency, LatencyMeasurement, Role


def with_measurement(latency: Latency, pod: str, node: str, rtt: float, at: float) -> Latency:
    """With one more measurement of a pod and of its node, unless a newer one of the pod is known."""
    known = latency.last.get(pod)
    if known is not None and known.at > at:
        return latency
    last = {**latency.last, pod: LatencyMeasurement(rtt, at)}
    return replace(latency, last=last, known={**latency.known, node: rtt}, now=max(latency.now, at))


def after_moves(latency: Latency, moves: Mapping[str, tuple[str, str]], now: float) -> Latency:
    """After pods moved from a node to a node: their measurements are dropped, and both nodes are visited."""
    last = {pod: measured for pod, measured in latency.last.items() if pod not in moves}
    left = {source for pod, (source, _) in moves.items() if latency.roles[pod] is Role.TARGET}
    visited = {node for nodes in moves.values() for node in nodes}
    return replace(
        latency,
        now=now,
        moved_at=now,
        last=last,
        visited=latency.visited | visited,
        left=latency.left | left,
    )


def current_round(latency: Latency, quiet: float) -> Latency:
    """The same, or after `quiet` seconds without a move a new round, in which no node is visited or known."""
    if latency.now - latency.moved_at < quiet:
        return latency
    return replace(latency, visited=frozenset(), known={}, left=frozenset())
