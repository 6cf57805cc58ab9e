"""What a move disrupts, in failing pod-minutes, so that it compares with what it saves."""

from __future__ import annotations

from matching.model.arrays import Arrays
from matching.problem import Pod

_SURGE_SHARE = 0.25
"""While a surge starts, two pods take room and start-up load, but nobody is without an answer."""


class MovePrices:
    def __init__(self, arrays: Arrays) -> None:
        self._arrays = arrays

    def of(self, pod: int) -> float:
        """An eviction takes one of n replicas away until its replacement is Ready."""
        moved = self._arrays.pods[pod]
        minutes = moved.startup_seconds / 60
        share = _SURGE_SHARE if moved.strategy.surges else 1 / self._replicas(moved)
        return self._arrays.options.move_price + minutes * share

    def _replicas(self, moved: Pod) -> int:
        if not moved.workload:
            return 1
        pods = self._arrays.pods
        return sum(pods[at].namespace == moved.namespace for at in self._arrays.by_workload[moved.workload])
