"""When the load of a node last changed: what was seen of a pod at another load says little about the load of now."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reactor.cluster.records import Node
from reactor.signals.usage import UsageHistory

CLEARLY_LESS = 0.1
"""Of its capacity a node must be less used than before to count as relieved."""
ABOUT_THE_SAME = 0.1
RECENT_STEPS = 4
"""Of the usage history: the last minute by default."""


@dataclass(frozen=True, slots=True)
class LoadChange:
    """Times are as exact as the steps of the usage history; negative infinity where nothing is known."""

    steady_since: float = float("-inf")
    """Since then the load is about what it is now."""
    fell: float = float("-inf")
    """When the load fell clearly, and did not rise to where it was since."""
    recent: tuple[tuple[float, float], ...] = ()
    """Time and load of the last steps. A single measurement may be taken in a pause."""

    def highest(self, since: float) -> float:
        return max((load for at, load in self.recent if at >= since), default=0.0)

    @classmethod
    def of(cls, node: Node, usage: UsageHistory) -> LoadChange:
        times, used = usage.node_history(node.name)
        axes = ("cpu", "memory")
        totals = np.array([[node.allocatable.get(axis, 0.0)] for axis in axes])
        if totals.min() <= 0:
            return cls()
        by_pods = used - np.array([[node.kept_back(axis)] for axis in axes])
        return cls.of_loads(times, np.max(by_pods / totals, axis=0).clip(min=0.0))

    @classmethod
    def of_loads(cls, times: NDArray[np.float64], loads: NDArray[np.float64]) -> LoadChange:
        """`loads` by step, oldest first; NaN where nothing was measured."""
        measured = ~np.isnan(loads)
        times, loads = times[measured], loads[measured]
        if len(loads) < 2:
            return cls()
        other = np.flatnonzero(np.abs(loads - loads[-1]) > ABOUT_THE_SAME)
        steady = times[other[-1] + 1] if len(other) else times[0]
        highest_later = np.maximum.accumulate(loads[::-1])[::-1][1:]
        before_falls = np.flatnonzero(loads[:-1] >= highest_later + CLEARLY_LESS)
        recent = zip(times[-RECENT_STEPS:].tolist(), loads[-RECENT_STEPS:].tolist(), strict=True)
        fell = float(times[before_falls[-1] + 1]) if len(before_falls) else float("-inf")
        return cls(float(steady), fell, tuple(recent))
