"""What a latency meter told of pods, and which nodes have been tried: the input of the planner `latency`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum


class Role(StrEnum):
    TARGET = "target"
    """The application itself: never sent to a node that nobody has measured."""
    PROBE = "probe"
    """An echo server only: goes ahead and finds out how far away a node is."""


@dataclass(frozen=True, slots=True)
class Measurement:
    rtt: float
    """Mean round trip in seconds."""
    at: float
    """When it was taken, in seconds of the same clock as `Latency.now`."""


@dataclass(frozen=True, slots=True)
class Latency:
    now: float
    moved_at: float
    """When a pod was moved last, or when the round began."""
    roles: Mapping[str, Role] = field(default_factory=dict)
    """By pod key; pods without a role are nobody's business here."""
    last: Mapping[str, Measurement] = field(default_factory=dict)
    """The last measurement of each pod, by key; one goes when its pod goes."""
    visited: frozenset[str] = frozenset()
    """Nodes that have had a target or a probe in this round; those that have one now are always counted."""


def heard(latency: Latency, pod: str, rtt: float, at: float) -> Latency:
    """With one more measurement; an older one than we have is forgotten."""
    known = latency.last.get(pod)
    if known is not None and known.at > at:
        return latency
    return replace(latency, last={**latency.last, pod: Measurement(rtt, at)}, now=max(latency.now, at))


def moved(latency: Latency, pods: Iterable[str], nodes: Iterable[str], now: float) -> Latency:
    """After pods went to other nodes: their measurements are gone, the nodes they left and came to are visited."""
    gone = set(pods)
    last = {pod: measured for pod, measured in latency.last.items() if pod not in gone}
    return replace(latency, now=now, moved_at=now, last=last, visited=latency.visited | set(nodes))


def round_of(latency: Latency, quiet: float) -> Latency:
    """The same, or after a quiet time a new round in which no node counts as visited."""
    if latency.now - latency.moved_at < quiet:
        return latency
    return replace(latency, visited=frozenset())
