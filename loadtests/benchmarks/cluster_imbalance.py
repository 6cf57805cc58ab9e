"""How unevenly pods are spread over nodes, and how that went on over time."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Spread:
    """`imbalance` is the sum over the nodes of what they hold above the mean, and the pods that no node holds.

    Without the latter, pods that were evicted and have no new node yet would count as balanced.
    """

    imbalance: float
    fullest: int
    emptiest: int


def spread_of(on_node: Mapping[str, int], nodes: Collection[str], pods: int) -> Spread:
    """`pods` is how many there are to be, wherever they are now."""
    held = [on_node.get(node, 0) for node in nodes]
    mean = pods / len(held)
    above = sum(max(0.0, number - mean) for number in held)
    return Spread(above + pods - sum(held), max(held), min(held))


@dataclass(frozen=True, slots=True)
class Moment:
    """Seconds since the start, and the imbalance then."""

    at: float
    imbalance: float


def reached(course: Collection[Moment], imbalance: float) -> float | None:
    """When the imbalance was first as low as that."""
    return next((moment.at for moment in course if moment.imbalance <= imbalance), None)


def thinned(course: Collection[Moment], step: float) -> list[Moment]:
    """The last moment of each step: enough to draw it."""
    last = {int(moment.at / step): moment for moment in course}
    return list(last.values())
