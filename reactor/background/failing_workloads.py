"""Workloads that fail on quiet nodes: their probes are counted apart until it is known whether they are broken.

A broken application fails everywhere. Counted with the others it would teach the curve that quiet nodes fail. A healthy
one fails there now and then, and that is what the curve's floor is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reactor.state.calibration import BIN_WIDTH, BINS, COLUMNS, FAILURES, PROBES, Floats

QUIET = 0.6
"""A node with less load is not why a probe fails."""
QUIET_BINS = round(QUIET / BIN_WIDTH)
WATCHED_FOR = 3600.0
"""Seconds that a workload is counted apart after a failure on a quiet node."""
BROKEN = 0.05
"""From this share of failures on quiet nodes on, its probes of this time are not counted."""
TOGETHER = 0
MOST_APART = 1_000
LEFT_OUT = MOST_APART + 1
"""For workloads beyond `MOST_APART`. Where so many fail on quiet nodes, load is not the reason."""
GROUPS = MOST_APART + 2


@dataclass(frozen=True, slots=True)
class _Watched:
    group: int
    until: float


class FailingWorkloads:
    def __init__(self) -> None:
        self._watched: dict[str, _Watched] = {}
        self._free = list(range(MOST_APART, TOGETHER, -1))
        self._apart = np.zeros((GROUPS, BINS, COLUMNS))

    def group_of(self, workload: str) -> int:
        watched = self._watched.get(workload)
        return TOGETHER if watched is None else watched.group

    def watch(self, workload: str, now: float) -> int:
        """It has failed on a quiet node; returns its group from now on."""
        if workload not in self._watched:
            group = self._free.pop() if self._free else LEFT_OUT
            self._watched[workload] = _Watched(group, now + WATCHED_FOR)
        return self._watched[workload].group

    def add(self, groups: NDArray[np.intp], bins: NDArray[np.intp], counted: Floats) -> None:
        """One value of each per pod. What is counted for `LEFT_OUT` is never looked at."""
        np.add.at(self._apart, (groups, bins), counted)

    def release(self, now: float) -> tuple[list[str], Floats]:
        """Workloads that were watched long enough, and what is to be counted of them."""
        over = [workload for workload, watched in self._watched.items() if now >= watched.until]
        total = np.zeros((BINS, COLUMNS))
        for workload in over:
            group = self._watched.pop(workload).group
            if group == LEFT_OUT:
                continue
            if not _broken(self._apart[group]):
                total += self._apart[group]
            self._apart[group] = 0.0
            self._free.append(group)
        return over, total


def _broken(table: Floats) -> bool:
    quiet = table[:QUIET_BINS]
    return bool(quiet[:, FAILURES].sum() > BROKEN * quiet[:, PROBES].sum())
