"""Runs on disk, a line each, so that an interrupted experiment loses nothing."""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Hashable, Iterable, Sequence
from pathlib import Path
from statistics import fmean

import msgspec

from loadtests.experiments.kse.arms import ARMS
from loadtests.experiments.kse.design import FUTURE_WORK, WORKLOADS

Key = tuple[str, str, int]


class Run(msgspec.Struct, frozen=True):
    scenario: str
    arm: str
    seed: int
    imbalance: float
    """Mean over the snapshots of the highest less the lowest node, in MB or millicores: what KSE calls MAE."""
    node_mean: float
    moves: int
    returns: int
    """Moves back to a node that the pod had left."""
    availability: float
    """Per cent."""
    p95_ms: float
    restarts: int
    trace: list[list[float]]
    """Per snapshot the nodes."""

    @property
    def key(self) -> Key:
        return (self.scenario, self.arm, self.seed)


class About(msgspec.Struct, frozen=True):
    """With which version of what the runs were made."""

    model: str
    rematch: str
    python: str
    machine: str

    @classmethod
    def read(cls, path: Path) -> About | None:
        return msgspec.json.decode(path.read_bytes(), type=cls) if path.exists() else None

    def write(self, path: Path) -> None:
        path.write_bytes(msgspec.json.format(msgspec.json.encode(self), indent=1) + b"\n")


def model_digest() -> str:
    """Of the parameters and arms: runs of other ones do not belong together."""
    described = repr((dict(WORKLOADS), FUTURE_WORK, [(arm.name, arm.text) for arm in ARMS.values()]))
    return hashlib.sha256(described.encode()).hexdigest()[:12]


def imbalance_of(snapshots: Sequence[Sequence[float]]) -> float:
    return fmean(max(nodes) - min(nodes) for nodes in snapshots)


def count_returns(moves: Iterable[tuple[Hashable, str, str]]) -> int:
    """Moves that bring a pod back to a node that it had left. Each is who moves, from where, to where."""
    left: dict[Hashable, set[str]] = {}
    count = 0
    for who, source, target in moves:
        known = left.setdefault(who, set())
        count += target in known
        known.add(source)
    return count


def write_csv(path: Path, runs: Iterable[Run], kind: type[Run] = Run) -> None:
    names = [name for name in kind.__struct_fields__ if name != "trace"]
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(names)
        writer.writerows([getattr(run, name) for name in names] for run in runs)
