"""What was measured, one line of JSON per step, written as it is measured: a run that is cut short loses nothing."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec import Struct

from loadtests.experiments.stable.design import STEPS, Arm, Phase, Run
from reactor.errors import InputError

T = TypeVar("T")

COLUMNS = (
    "world", "tool", "phase", "planner", "threshold", "seed", "paper_rate", "rate", "seconds", "requests", "failures",
    "availability", "p50_ms", "p95_ms", "p99_ms", "rematches", "moves", "lost_in_moves", "dumped", "without_node",
    "restarts", "cores_used", "outside_idle", "delay_ms", "late_ms", "unsent", "valid",
)  # fmt: skip


class StepRecord(Struct, frozen=True, rename="camel"):
    world: str
    tool: str
    phase: Phase
    planner: str
    threshold: float
    seed: int
    paper_rate: int
    rate: float
    """Requests per second and app."""
    seconds: float
    requests: int
    failures: int
    availability: float
    """Success ratio averaged over the apps, as in the paper."""
    p50_ms: float
    p95_ms: float
    p99_ms: float
    rematches: int = 0
    moves: int = 0
    lost_in_moves: int = 0
    dumped: int = 0
    """Apps that plans of the step left without a node, each once."""
    left_out: tuple[str, ...] = ()
    without_node: int = 0
    restarts: int = 0
    cores_used: float = 0.0
    cpu: Mapping[str, float] = {}
    memory: Mapping[str, float] = {}
    app_cpu: Mapping[str, float] = {}
    app_memory: Mapping[str, float] = {}
    outside_idle: float | None = None
    delay_ms: float | None = None
    late_ms: float | None = None
    unsent: float | None = None
    valid: bool = True
    placement: Mapping[str, str] = {}
    """After the step."""
    settled: Mapping[str, str] = {}
    """The last placement up to then in which nothing was being moved and every app had a node."""

    @property
    def arm(self) -> Arm:
        return Arm(self.phase, self.planner, self.threshold)

    @property
    def run(self) -> Run:
        return Run(self.arm, self.seed)


class About(Struct, frozen=True, rename="camel"):
    """How the records of one world came about."""

    world: str
    tool: str
    started: str
    form: str
    capacity: float
    """Requests per second and app that fill all nodes."""
    cores: float
    nodes: Mapping[str, float]
    versions: Mapping[str, str]
    settings: Mapping[str, object]
    """Of our default arm."""
    notes: tuple[str, ...] = ()
    memory: Mapping[str, float] = {}
    """Bytes of the nodes."""


class DataFolder:
    """`WORLD.jsonl` and `WORLD.json` (what they are about) in one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def begin(self, about: About) -> None:
        self._about(about.world).write_bytes(msgspec.json.format(msgspec.json.encode(about)))
        self._lines(about.world).touch()

    def forget(self, world: str) -> None:
        for path in (self._about(world), self._lines(world), self._default(world)):
            path.unlink(missing_ok=True)

    def add(self, record: StepRecord) -> None:
        with self._lines(record.world).open("ab") as lines:
            lines.write(msgspec.json.encode(record) + b"\n")

    def keep_default(self, world: str, placements: Mapping[int, Mapping[str, str]]) -> None:
        """Where the scheduler put the apps, by seed: the real one would not do the same again."""
        self._default(world).write_bytes(msgspec.json.encode(placements))

    def default_placements(self, world: str) -> dict[int, Mapping[str, str]]:
        path = self._default(world)
        return _decode(path.read_bytes(), dict[int, Mapping[str, str]], path) if path.exists() else {}

    def about(self, world: str) -> About | None:
        path = self._about(world)
        return _decode(path.read_bytes(), About, path) if path.exists() else None

    def records(self, world: str) -> list[StepRecord]:
        """A last line that was cut off in the middle is left out: its step is measured again."""
        path = self._lines(world)
        if not path.exists():
            return []
        *whole, _ = path.read_bytes().split(b"\n")
        return [_decode(line, StepRecord, path) for line in whole]

    def repair(self, world: str) -> None:
        path = self._lines(world)
        if path.exists():
            *whole, _ = path.read_bytes().split(b"\n")
            path.write_bytes(b"".join(line + b"\n" for line in whole))

    def _default(self, world: str) -> Path:
        return self.folder / f"{world}-default-placement.json"

    def _about(self, world: str) -> Path:
        return self.folder / f"{world}.json"

    def _lines(self, world: str) -> Path:
        return self.folder / f"{world}.jsonl"


def _decode(data: bytes, kind: type[T], path: Path) -> T:
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.DecodeError as error:
        raise InputError(f"{path} is not what this version writes: {error}; run without --resume") from error


def write_csv(records: Iterable[StepRecord], path: Path) -> None:
    with path.open("w", newline="", encoding="utf-8") as out:
        table = csv.writer(out)
        table.writerow(COLUMNS)
        for record in records:
            table.writerow([_cell(getattr(record, column)) for column in COLUMNS])


def _cell(value: object) -> object:
    return f"{value:.5g}" if isinstance(value, float) else value


def by_run(records: Iterable[StepRecord]) -> dict[Run, list[StepRecord]]:
    """The last whole set of each run: a run that was cut short is there with fewer steps."""
    found: dict[Run, dict[int, StepRecord]] = {}
    for record in records:
        steps = found.setdefault(record.run, {})
        if record.paper_rate == STEPS[0].paper_rate:
            steps.clear()
        steps[record.paper_rate] = record
    return {run: list(steps.values()) for run, steps in found.items()}


def latest(records: Iterable[StepRecord]) -> list[StepRecord]:
    """Of runs that were begun twice only the later one."""
    return [record for steps in by_run(records).values() for record in steps]
