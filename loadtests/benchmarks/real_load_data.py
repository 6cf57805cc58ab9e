"""Clusters made of measured series: what pods used until now, what they used next, and requests that are wrong.

Series are drawn with replacement, each with its own point in time, so no two instances are alike. A pod's usage is its
last sample, its peak the estimate of `predictors.peaks` over the two hours before. Its request is its mean use times a
factor that is as often too small as too large, and the pods are placed by requests, as kube-scheduler would.
"""

from __future__ import annotations

import csv
import gzip
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from matching.problem import Node, Options, Pod, Problem
from predictors.peaks import SigmaOrPercentile

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

HISTORY = 24
FUTURE = 15
FILLED = 0.6
"""Part of the cluster's room that the peaks of all pods add up to."""


@dataclass(frozen=True, slots=True)
class Source:
    name: str
    files: tuple[tuple[str, str], ...]
    """Axis and file."""
    step: int


SOURCES = (
    Source("azure", (("cpu", "azure_v1_cpu_avg_pct.csv.gz"),), 300),
    Source("google", (("cpu", "google2011_job_cpu_pct.csv.gz"), ("memory", "google2011_job_mem_pct.csv.gz")), 300),
    Source("nezha", (("cpu", "nezha_k8s_pod_cpu_millicores.csv.gz"), ("memory", "nezha_k8s_pod_mem_mib.csv.gz")), 60),
)
HELD_OUT = Source(
    "cloudcluster", (("cpu", "cloudcluster_pool_cpu.csv.gz"), ("memory", "cloudcluster_pool_mem.csv.gz")), 300
)
"""Nothing in a planner was chosen by looking at it."""


@dataclass(frozen=True, slots=True)
class Size:
    nodes: int = 20
    pods: int = 300


@dataclass(frozen=True, slots=True)
class Instance:
    problem: Problem
    future: Floats
    """(axes, pods, steps): what really came."""


@dataclass(frozen=True, slots=True)
class LoadSeries:
    """All series of a source that are long enough, axis by axis on the same samples."""

    axes: tuple[str, ...]
    values: tuple[Floats, ...]
    """(axes, samples) each."""


def read_series(folder: Path, source: Source) -> LoadSeries:
    by_axis = [_read(folder / name) for _, name in source.files]
    names = sorted(set.intersection(*(set(part) for part in by_axis)))
    every = []
    for name in names:
        times = sorted(set.intersection(*(set(part[name]) for part in by_axis)))
        if len(times) >= HISTORY + FUTURE + 1:
            every.append(np.array([[part[name][time] for time in times] for part in by_axis]))
    if not every:
        raise ValueError(f"no series of {source.name} in {folder} has {HISTORY + FUTURE + 1} samples")
    return LoadSeries(tuple(axis for axis, _ in source.files), tuple(every))


def draw(series: LoadSeries, size: Size, seed: int, options: Options | None = None) -> Instance:
    rng = np.random.default_rng(seed)
    past, future = _windows(series, size.pods, rng)
    usage = past[:, :, -1]
    peak = np.stack([SigmaOrPercentile().estimate_rows(rows) for rows in past])
    request = past.mean(axis=2) * rng.lognormal(0.0, 0.6, usage.shape[1])
    room = _room(peak, size.nodes, rng)
    at = _by_requests(request, room)
    pods = tuple(
        Pod(
            key=f"load/pod-{pod:03}",
            uid=f"pod-{pod:03}",
            usage=tuple(usage[:, pod].tolist()),
            request=tuple(request[:, pod].tolist()),
            peak=tuple(np.maximum(peak, usage)[:, pod].tolist()),
            node=f"node-{at[pod]:02}",
        )
        for pod in range(size.pods)
    )
    nodes = tuple(Node(f"node-{node:02}", tuple(room[:, node].tolist())) for node in range(size.nodes))
    return Instance(Problem(series.axes, pods, nodes, options or Options()), future)


def _read(path: Path) -> dict[str, dict[int, float]]:
    found: defaultdict[str, dict[int, float]] = defaultdict(dict)
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for row in csv.DictReader(lines):
            found[row["series_id"]][int(float(row["timestamp"]))] = float(row["value"])
    return found


def _windows(series: LoadSeries, pods: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """(axes, pods, samples) before and after a point in time of each pod's own; pods differ in size."""
    parts = []
    for which in rng.integers(len(series.values), size=pods).tolist():
        values = series.values[which]
        start = int(rng.integers(values.shape[1] - HISTORY - FUTURE + 1))
        parts.append(values[:, start : start + HISTORY + FUTURE] * rng.choice((0.5, 1.0, 2.0)))
    every = np.stack(parts, axis=1)
    return every[:, :, :HISTORY], every[:, :, HISTORY:]


def _room(peak: Floats, nodes: int, rng: np.random.Generator) -> Floats:
    """(axes, nodes): machines of all sizes, the largest twice the smallest."""
    sizes = rng.uniform(1.0, 2.0, nodes)
    room: Floats = peak.sum(axis=1)[:, None] / FILLED * sizes / sizes.sum()
    return room


def _by_requests(request: Floats, room: Floats) -> Ints:
    """One after the other to the node with the smallest share requested."""
    asked = np.zeros_like(room)
    at = np.zeros(request.shape[1], dtype=np.int64)
    for pod in range(request.shape[1]):
        at[pod] = ((asked + request[:, pod, None]) / room).max(axis=0).argmin()
        asked[:, at[pod]] += request[:, pod]
    return at


@dataclass(frozen=True, slots=True)
class Figures:
    """Deviation is the standard deviation of the nodes' usage as shares of their room, over nodes and axes."""

    before: float
    after: float
    before_next: float
    """The same over what came in the next steps, without the plan."""
    after_next: float
    overloaded_before: float
    """Nodes that in some of the next steps used more than the headroom leaves."""
    overloaded: float
    moves: float
    blocking_pairs: float
    milliseconds: float


@dataclass(frozen=True, slots=True)
class Row:
    source: str
    title: str
    figures: Figures
