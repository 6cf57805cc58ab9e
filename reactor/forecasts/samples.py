"""The recorded usage of one kind of series in steps of five minutes, as arrays: what the predictors read.

A series is here while it has samples. Rows are free again some time after its last one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from predictors.protocol import History
from reactor.history.levels import FIVE_MINUTES, Axis

SHARD = 1024
"""Series that are forecast at once: the event loop waits for one operation on so many at most."""
SILENT = 12
"""Steps without a sample after which a series is dropped."""

Rows = NDArray[np.intp]


class Samples:
    def __init__(self, axes: Collection[Axis], columns: int) -> None:
        self.columns = columns
        self.names: list[str] = []
        """By row; empty where a row is free."""
        self.rows: dict[str, int] = {}
        self._free: list[int] = []
        self.values = {axis: np.full((0, columns), np.nan, np.float32) for axis in axes}
        self.cut = np.zeros((0, columns), np.bool_)
        """Where CPU was cut by throttling or a full node."""

    def rows_of(self, names: Sequence[str]) -> Rows:
        """Rows of these names, new ones where they have none."""
        for name in names:
            if name not in self.rows:
                self._add(name)
        return np.array([self.rows[name] for name in names], np.intp)

    def put(self, axis: Axis, rows: Rows, columns: slice, values: NDArray[np.floating]) -> None:
        self.values[axis][rows, columns] = values

    def shift(self, steps: int) -> None:
        """So many steps later; series that have been silent for long are dropped."""
        steps = min(steps, self.columns)
        for rows in self.shards():
            for values in self.values.values():
                _shift(values[rows], steps, np.nan)
            _shift(self.cut[rows], steps, False)
        self._drop_silent()

    def shards(self) -> Iterator[slice]:
        for begin in range(0, len(self.names), SHARD):
            yield slice(begin, min(begin + SHARD, len(self.names)))

    def history(self, axis: Axis, rows: slice | Rows) -> History:
        cut = self.cut[rows] if axis is Axis.CPU else None
        return History(self.values[axis][rows], FIVE_MINUTES.step, cut)

    @property
    def known(self) -> Mapping[str, int]:
        return dict(self.rows)

    def _add(self, name: str) -> None:
        if not self._free:
            first = len(self.names)
            self.names += [""] * SHARD
            self._free = list(range(first + SHARD - 1, first - 1, -1))
            for axis, values in self.values.items():
                self.values[axis] = np.vstack((values, np.full((SHARD, self.columns), np.nan, np.float32)))
            self.cut = np.vstack((self.cut, np.zeros((SHARD, self.columns), np.bool_)))
        row = self._free.pop()
        self.names[row] = name
        self.rows[name] = row

    def _drop_silent(self) -> None:
        heard = np.zeros(len(self.names), np.bool_)
        for values in self.values.values():
            heard |= np.isfinite(values[:, -SILENT:]).any(axis=1)
        for name, row in [(name, row) for name, row in self.rows.items() if not heard[row]]:
            del self.rows[name]
            self.names[row] = ""
            self._free.append(row)
            self.cut[row] = False
            for values in self.values.values():
                values[row] = np.nan


def _shift(values: NDArray[np.generic], steps: int, new: float | bool) -> None:
    values[:, : values.shape[1] - steps] = values[:, steps:]
    values[:, values.shape[1] - steps :] = new
