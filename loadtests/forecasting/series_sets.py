"""Sets of real series, cut by wall clock.

Series that were recorded at the same time share one instant: before it is for training, after it for tests. A set may
have several recordings (Kubernetes pods: four days), each with its own instant.
"""

from __future__ import annotations

import csv
import gzip
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from zlib import crc32

import numpy as np
import numpy.typing as npt

from predictors.means import deviation, mean
from predictors.protocol import History

Floats32 = npt.NDArray[np.float32]
Flags = npt.NDArray[np.bool_]

TRAINING = 0.7
LEAST_DEVIATION = 0.005
"""Of the capacity, in training: flatter series need no forecast."""


@dataclass(frozen=True, slots=True)
class SeriesSet:
    name: str
    file: str
    step: float
    capacity: float | None
    """None: unknown, the most of a series before the cut stands for it."""


SETS = (
    SeriesSet("Azure", "azure_v1_cpu_avg_pct", 300.0, 100.0),
    SeriesSet("Google", "google2011_job_cpu_pct", 300.0, 100.0),
    SeriesSet("pools", "cloudcluster_pool_cpu", 60.0, None),
    SeriesSet("k8s pods", "nezha_k8s_pod_cpu_millicores", 60.0, None),
)


@dataclass(frozen=True, slots=True)
class Recording:
    names: tuple[str, ...]
    values: Floats32
    """Shares of capacity; a row per series, oldest column first."""
    step: float
    cut: int
    """Columns before it are for training."""

    def history(self, columns: int | None = None) -> History:
        return History(self.values[:, :columns], self.step)

    def chosen_on(self) -> Flags:
        """The half of the series on which choices were made; the other half is reported."""
        return np.array([crc32(name.encode()) % 2 == 0 for name in self.names])

    def coarser(self, step: float) -> Recording:
        """Means over longer steps; a mean over a gap is none."""
        factor = round(step / self.step)
        columns = self.values.shape[1] // factor
        means = self.values[:, : columns * factor].reshape(len(self.values), columns, factor).mean(axis=2)
        return Recording(self.names, means, step, self.cut // factor)


def read_recordings(folder: Path, which: SeriesSet) -> list[Recording]:
    samples: defaultdict[str, dict[float, float]] = defaultdict(dict)
    with gzip.open(folder / f"{which.file}.csv.gz", "rt", encoding="utf-8") as lines:
        for row in csv.DictReader(lines):
            samples[row["series_id"]][float(row["timestamp"])] = float(row["value"])
    return [_recording({name: samples[name] for name in names}, which) for names in _at_the_same_time(samples)]


def before_the_cut(recordings: Sequence[Recording]) -> History:
    """All of it as one history, so that what is latest stands in the last columns."""
    width = max(each.cut for each in recordings)
    parts = []
    for each in recordings:
        part = np.full((len(each.names), width), np.nan, dtype=np.float32)
        part[:, width - each.cut :] = each.values[:, : each.cut]
        parts.append(part)
    return History(np.concatenate(parts), recordings[0].step)


def _at_the_same_time(samples: Mapping[str, Mapping[float, float]]) -> Iterator[list[str]]:
    """Groups whose spans of time overlap."""
    spans = sorted((min(times), max(times), name) for name, times in samples.items())
    group: list[str] = []
    until = -np.inf
    for start, end, name in spans:
        if group and start > until:
            yield group
            group = []
        group.append(name)
        until = max(until, end)
    yield group


def _recording(samples: Mapping[str, Mapping[float, float]], which: SeriesSet) -> Recording:
    start = min(min(times) for times in samples.values())
    end = max(max(times) for times in samples.values())
    columns = round((end - start) / which.step) + 1
    values = np.full((len(samples), columns), np.nan, dtype=np.float32)
    for row, times in enumerate(samples.values()):
        for time, value in times.items():
            values[row, round((time - start) / which.step)] = value
    cut = int(TRAINING * columns)
    capacity = np.fmax.reduce(values[:, :cut], axis=1) if which.capacity is None else np.float32(which.capacity)
    shares = values / np.reshape(np.where(capacity > 0, capacity, np.nan), (-1, 1))
    training = shares[:, :cut].astype(np.float64)
    varied = deviation(training, mean(training)) > LEAST_DEVIATION
    names = tuple(name for name, kept in zip(samples, varied, strict=True) if kept)
    return Recording(names, shares[varied], which.step, cut)
