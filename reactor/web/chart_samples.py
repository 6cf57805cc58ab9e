"""The samples that the charts draw: usage, availability and happiness over time, bounded, in memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from heapq import nsmallest
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reactor.web.view import NodeSeries, Series

SAMPLES_KEPT = 1800
MOST_CELLS = 2_000_000
"""Samples times nodes, 16 MB for both axes: with more than 1,111 nodes the lines of the nodes are shorter."""
SHOWN_NODES = 12
SHOWN_POINTS = 600
STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600)
"""Seconds between points. Fixed steps of the clock, so that a thinned line does not jump as time goes on."""
RECENT = 30
"""Samples. A node that was not measured in any of them is not busy."""

Shares = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class ChartSample:
    """One point of the charts: shares of capacity, None where not measured."""

    at: float
    availability: float | None
    latency_p95: float | None
    happiness_min: float | None
    """Of the running managed pods; None if there are none."""
    happiness_mean: float | None
    cpu: Mapping[str, float | None]
    memory: Mapping[str, float | None]


class _Point(NamedTuple):
    number: int
    at: float
    availability: float | None
    latency_p95: float | None
    happiness_min: float | None
    happiness_mean: float | None


class ChartSamples:
    def __init__(self) -> None:
        self._points: deque[_Point] = deque(maxlen=SAMPLES_KEPT)
        self._nodes = _NodeShares((), None, 0)
        self.version = 0
        """Grows with every sample."""

    def add(self, sample: ChartSample) -> None:
        self.version += 1
        if not sample.cpu.keys() <= self._nodes.columns.keys():
            self._nodes = _NodeShares(sample.cpu, self._nodes, self.version)
        self._nodes.write(self.version, sample)
        latency, lowest, mean = sample.latency_p95, sample.happiness_min, sample.happiness_mean
        self._points.append(_Point(self.version, sample.at, sample.availability, latency, lowest, mean))

    @property
    def since(self) -> float:
        """The time of the oldest sample."""
        return self._points[0].at if self._points else float("inf")

    def cut(self) -> ChartCut:
        """The busiest nodes, and no more points than a chart is wide: a small copy."""
        points = _thinned(list(self._points))
        names = self._nodes.busiest(self.version)
        shares = self._nodes.lines(names, [point.number for point in points], self.version)
        return ChartCut(points, names, shares, len(self._nodes.columns))


@dataclass(frozen=True, slots=True)
class ChartCut:
    points: Sequence[_Point]
    names: Sequence[str]
    shares: Shares
    """By point, axis and name."""
    node_count: int

    def series(self, rematches: tuple[float, ...]) -> Series:
        """`rematches` are the marks in the charts."""
        points = self.points
        columns = zip(self.names, *self.shares.transpose(1, 2, 0), strict=True)
        return Series(
            times=tuple(point.at for point in points),
            availability=tuple(point.availability for point in points),
            latency_p95=tuple(point.latency_p95 for point in points),
            happiness_min=tuple(point.happiness_min for point in points),
            happiness_mean=tuple(point.happiness_mean for point in points),
            nodes=tuple(NodeSeries(name, _known(cpu), _known(memory)) for name, cpu, memory in columns),
            node_count=self.node_count,
            rematches=rematches,
        )


def _thinned(points: Sequence[_Point]) -> list[_Point]:
    """The newest point of each step."""
    if len(points) <= SHOWN_POINTS:
        return list(points)
    span = points[-1].at - points[0].at
    step = next((step for step in STEPS if span / step < SHOWN_POINTS), STEPS[-1])
    newest = {int(point.at // step): point for point in points}
    return [newest[key] for key in sorted(newest)][-SHOWN_POINTS:]


class _NodeShares:
    """CPU and memory of every node in the newest samples. NaN: not measured. A sample's row is its number modulo the
    number of rows."""

    def __init__(self, names: Iterable[str], before: _NodeShares | None, newest: int) -> None:
        """Takes over what was known `before` sample `newest`."""
        known = before.measured() if before is not None else ()
        self.columns = {name: at for at, name in enumerate(dict.fromkeys((*known, *names)))}
        rows = max(1, min(SAMPLES_KEPT, MOST_CELLS // max(1, len(self.columns))))
        self._shares: Shares = np.full((rows, 2, len(self.columns)), np.nan, dtype=np.float32)
        if before is not None and known:
            old = [before.columns[name] for name in known]
            for number in range(max(1, newest - min(rows, before.rows) + 1), newest):
                self._shares[number % rows, :, : len(old)] = before.row(number)[:, old]

    @property
    def rows(self) -> int:
        return len(self._shares)

    def row(self, number: int) -> Shares:
        row: Shares = self._shares[number % len(self._shares)]
        return row

    def measured(self) -> tuple[str, ...]:
        """The nodes with at least one measurement."""
        some: NDArray[np.bool_] = np.logical_or.reduce(~np.isnan(self._shares), axis=(0, 1))
        return tuple(name for name, at in self.columns.items() if some[at])

    def write(self, number: int, sample: ChartSample) -> None:
        row = self.row(number)
        row.fill(np.nan)
        for axis, shares in enumerate((sample.cpu, sample.memory)):
            at = [self.columns[name] for name in shares]
            row[axis, at] = [np.nan if share is None else share for share in shares.values()]

    def busiest(self, newest: int) -> list[str]:
        """The nodes with the highest recent CPU share, by name."""
        recent = self._recent_cpu(newest)
        return sorted(nsmallest(SHOWN_NODES, self.columns, key=lambda name: (-recent[self.columns[name]], name)))

    def lines(self, names: Sequence[str], numbers: Sequence[int], newest: int) -> Shares:
        """By number, axis and name; NaN for samples that are not kept any more."""
        lines: Shares = np.full((len(numbers), 2, len(names)), np.nan, dtype=np.float32)
        kept = [number % self.rows for number in numbers if number > newest - self.rows]
        columns = [self.columns[name] for name in names]
        lines[len(numbers) - len(kept) :] = self._shares[kept][:, :, columns]
        return lines

    def _recent_cpu(self, newest: int) -> list[float]:
        """By column the newest measurement."""
        found: Shares = np.full(len(self.columns), np.nan, dtype=np.float32)
        for number in range(newest, max(0, newest - min(RECENT, self.rows)), -1):
            found = np.where(np.isnan(found), self.row(number)[0], found)
        recent: list[float] = np.nan_to_num(found).tolist()
        return recent


def _known(column: Shares) -> tuple[float | None, ...]:
    """None where NaN. Rounded as far as a share is kept exactly."""
    return tuple(None if share != share else round(share, 6) for share in column.tolist())
