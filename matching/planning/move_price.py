"""What a move disrupts, in failing pod-minutes, so that it compares with what it saves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from functools import cached_property

from matching.model.arrays import Arrays
from matching.planning.budget import workload_of

_SURGE_SHARE = 0.25
"""While a surge starts, two pods take room and start-up load, but nobody is without an answer."""


class MovePrices:
    def __init__(self, arrays: Arrays) -> None:
        self._arrays = arrays

    def of(self, pod: int) -> float:
        """An eviction takes one of n replicas away until its replacement is Ready."""
        moved = self._arrays.pods[pod]
        minutes = moved.startup_seconds / 60
        share = _SURGE_SHARE if moved.strategy.surges else 1 / self._replicas[workload_of(moved)]
        return self._arrays.options.move_price + minutes * share

    @cached_property
    def _replicas(self) -> Counter[Hashable]:
        return Counter(map(workload_of, self._arrays.pods))
