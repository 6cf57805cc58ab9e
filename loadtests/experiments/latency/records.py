"""What a run has seen. Times are seconds since its start; places are ranks of workers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from loadtests.experiments.latency.design import Arm, Case, Trouble
from loadtests.record_file import RecordFile


class RequestSeen(Struct, frozen=True, array_like=True):
    """Of the user to the application, through the Service."""

    at: float
    rank: int
    """0: there was no ready endpoint."""
    seconds: float
    ending: str


class MeasurementSeen(Struct, frozen=True, array_like=True):
    """Of the meter, as it was published."""

    at: float
    role: str
    rank: int
    rtt: float | None
    loss: float


class PlacementSeen(Struct, frozen=True, array_like=True):
    """Ready pods, from this time on."""

    at: float
    targets: tuple[int, ...]
    probes: tuple[int, ...]


class MoveSeen(Struct, frozen=True, rename="camel"):
    plan: str
    role: str
    source: int
    target: int
    started: float
    ended: float
    outcome: str


class RunRecord(Struct, frozen=True, rename="camel", kw_only=True):
    arm: Arm
    test: int
    targets: int
    trouble: Trouble
    seed: int
    pace: float
    """Factor on all delays and waiting times."""
    workers: Sequence[str]
    """In the order of their ranks."""
    began: str
    seconds: float
    requests: list[RequestSeen]
    measurements: list[MeasurementSeen]
    placements: list[PlacementSeen]
    moves: list[MoveSeen]
    changed_at: float | None = None
    """Test 3: when the worker of rank 8 came nearer."""
    silent: tuple[float, float] | None = None
    """From when to when the broker said nothing."""
    problems: tuple[str, ...] = ()
    """What the controller told of, each once."""
    finished: bool
    """The placement came to rest before time was up."""

    @property
    def case(self) -> Case:
        return Case(self.arm, self.test, self.targets, self.trouble, self.seed)


def record_file(path: Path) -> RecordFile[RunRecord]:
    return RecordFile(path, RunRecord)
