"""Storage of usage: one row per pod or node in a few arrays, so that 150,000 pods take far less than 150 MB."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from predictors.protocol import PeakEstimator
from reactor.signals.measurements import MISSING, Measurement, MetricsSource, Quality
from reactor.signals.minute_sums import MinuteSums

CPU, MEMORY, THROTTLED, NETWORK, PRESSURE, DISK, LINK = 0, 1, 2, 3, 4, 5, 6
"""LINK is the speed of a node's link, what NETWORK is to be compared with."""
AXES = 7
_PEAK_AXES = 2
_COLUMNS = 60
_MOST_ABOVE_SEEN = 1.25
"""So many times the highest sample a peak may be. The use of a pod that is restarted again and again is nothing or all,
and N sigmas of that are far above anything it ever used."""
_BLOCK = 4096
_SOURCES = (MetricsSource.PROMETHEUS, MetricsSource.METRICS_API)


Batch = tuple[NDArray[np.intp], NDArray[np.float64], NDArray[np.float64]]
"""Slots, values and times of samples; a NaN value is an invalid sample."""


@dataclass(frozen=True, slots=True)
class Rows:
    """The newest sample per row and axis. `at` 0 means never measured; NaN with a time means invalid."""

    slots: dict[str, int] = field(default_factory=dict)
    values: NDArray[np.float64] = field(default_factory=lambda: np.full((0, AXES), np.nan))
    at: NDArray[np.float64] = field(default_factory=lambda: np.zeros((0, AXES)))
    sources: NDArray[np.uint8] = field(default_factory=lambda: np.zeros((0, AXES), np.uint8))
    workloads: NDArray[np.int32] = field(default_factory=lambda: np.full(0, -1, np.int32))

    def measurement(self, key: str, axis: int, now: float, freshness: float) -> Measurement:
        slot = self.slots.get(key)
        if slot is None or not self.at[slot, axis]:
            return MISSING
        at, value = float(self.at[slot, axis]), float(self.values[slot, axis])
        source = _SOURCES[self.sources[slot, axis]]
        if math.isnan(value):
            return Measurement(Quality.INVALID, value, at, source)
        return Measurement(Quality.FRESH if now - at <= freshness else Quality.STALE, value, at, source)

    def copy(self) -> Rows:
        return Rows(dict(self.slots), self.values.copy(), self.at.copy(), self.sources.copy(), self.workloads.copy())

    def grown(self, more: int) -> Rows:
        return replace(
            self,
            values=np.concatenate([self.values, np.full((more, AXES), np.nan)]),
            at=np.concatenate([self.at, np.zeros((more, AXES))]),
            sources=np.concatenate([self.sources, np.zeros((more, AXES), np.uint8)]),
            workloads=np.concatenate([self.workloads, np.full(more, -1, np.int32)]),
        )


class UsageTable:
    """Rows plus a ring of history: `_COLUMNS` steps that together are the window, the highest value of each step.

    Prometheus comes first; the metrics API fills its gaps. An invalid sample replaces a value of its own source, but
    not a valid one of another source.
    """

    def __init__(self, window: float) -> None:
        self.rows = Rows()
        self.minute = MinuteSums(AXES)
        self._step = window / _COLUMNS
        self._tick = 0
        self._now = 0.0
        self._free: list[int] = []
        self._history: list[NDArray[np.float32]] = []
        self._top = 0
        """Slots from here on were never used."""
        self._frozen: Rows | None = None
        """A copy of the rows as they are now."""

    def freeze(self) -> Rows:
        """A copy that does not change; the same one until a row does."""
        if self._frozen is None:
            self._frozen = self.rows.copy()
        return self._frozen

    def set_window(self, window: float) -> None:
        """A new window clears the history."""
        if window == self._step * _COLUMNS:
            return
        self._step, self._tick = window / _COLUMNS, 0
        for block in self._history:
            block.fill(np.nan)

    def add(self, key: str, workload: int = -1) -> int:
        if not self._free:
            self._grow()
        self._frozen = None
        slot = self._free.pop()
        self._top = max(self._top, slot + 1)
        self.rows.slots[key] = slot
        self.rows.workloads[slot] = workload
        return slot

    def drop(self, key: str) -> None:
        slot = self.rows.slots.pop(key, None)
        if slot is None:
            return
        self._frozen = None
        self.rows.values[slot] = np.nan
        self.rows.at[slot] = 0.0
        self.rows.workloads[slot] = -1
        self._history[slot // _BLOCK][slot % _BLOCK] = np.nan
        self.minute.clear(slot)
        self._free.append(slot)

    def write(self, axis: int, batch: Batch, source: MetricsSource, *, protects: float) -> None:
        """Store samples, except where a better one is younger than `protects` seconds."""
        self._frozen = None
        rows, number = self.rows, _SOURCES.index(source)
        slots, values, at = batch
        held_at, held_source = rows.at[slots, axis], rows.sources[slots, axis]
        holds_valid = ~np.isnan(rows.values[slots, axis]) & (at - held_at <= protects)
        beaten = holds_valid & ((number > held_source) | np.isnan(values))
        worse = (held_at > 0) & np.where(held_source == number, at < held_at, beaten)
        counts = ~worse & (at > held_at) & (at > self._now - protects)
        self.minute.add(axis, slots[counts], values[counts])
        slots, values, at = slots[~worse], values[~worse], at[~worse]
        rows.values[slots, axis] = values
        rows.at[slots, axis] = at
        rows.sources[slots, axis] = number
        if axis < _PEAK_AXES:
            self._write_history(axis, slots, values)

    def _write_history(self, axis: int, slots: NDArray[np.intp], values: NDArray[np.float64]) -> None:
        column = self._tick % _COLUMNS
        blocks = slots // _BLOCK
        for number in np.unique(blocks):
            here = blocks == number
            block, indexes = self._history[number], slots[here] % _BLOCK
            block[indexes, axis, column] = np.fmax(block[indexes, axis, column], values[here])

    def advance_to(self, now: float) -> None:
        """Move the ring to the step of `now`; steps without samples stay empty."""
        self._now = now
        tick = int(now // self._step)
        if tick <= self._tick:
            return
        columns = [step % _COLUMNS for step in range(max(self._tick + 1, tick - _COLUMNS + 1), tick + 1)]
        for block in self._history:
            block[:, :, columns] = np.nan
        self._tick = tick

    def peak(self, slot: int, axis: int, estimator: PeakEstimator) -> float:
        row = self._history[slot // _BLOCK][slot % _BLOCK, axis, self._oldest_first()]
        return float(estimator.estimate_rows(row[np.newaxis, :])[0])

    def history(self, key: str) -> tuple[NDArray[np.float64], NDArray[np.float32]]:
        """The times at which the steps began, oldest first, and the highest CPU and memory in each; NaN for a step
        without samples."""
        slot, order = self.rows.slots.get(key), self._oldest_first()
        times: NDArray[np.float64] = np.arange(self._tick + 1 - _COLUMNS, self._tick + 1, dtype=np.float64) * self._step
        if slot is None:
            return times, np.full((_PEAK_AXES, _COLUMNS), np.nan, np.float32)
        return times, self._history[slot // _BLOCK][slot % _BLOCK][:, order]

    def peaks(self, estimator: PeakEstimator) -> NDArray[np.float64]:
        if not self._history:
            return np.full((0, _PEAK_AXES), np.nan)
        return np.concatenate(list(self._peak_blocks(estimator)))

    def _peak_blocks(self, estimator: PeakEstimator) -> Iterator[NDArray[np.float64]]:
        order = self._oldest_first()
        for number, block in enumerate(self._history):
            used = min(max(self._top - number * _BLOCK, 0), _BLOCK)
            peaks = np.full((_BLOCK, _PEAK_AXES), np.nan)
            for axis in range(_PEAK_AXES):
                seen = block[:used, axis, order]
                highest = np.fmax.reduce(seen, axis=1)
                peaks[:used, axis] = np.fmin(estimator.estimate_rows(seen), _MOST_ABOVE_SEEN * highest)
            yield peaks

    def _oldest_first(self) -> NDArray[np.intp]:
        return np.asarray((np.arange(_COLUMNS) + self._tick + 1) % _COLUMNS)

    def _grow(self) -> None:
        size = len(self._history) * _BLOCK
        self.rows = self.rows.grown(_BLOCK)
        self.minute.grow(_BLOCK)
        self._history.append(np.full((_BLOCK, _PEAK_AXES, _COLUMNS), np.nan, np.float32))
        self._free.extend(range(size + _BLOCK - 1, size - 1, -1))
