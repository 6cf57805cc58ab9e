"""What a controller holds: memory, tasks, files, database; and whether that stays the same."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from loadtests.benchmarks.process import process_use
from loadtests.chaos.controllers import ControllerProcess

_STORE_SUFFIXES = ("", "-wal", "-shm")


@dataclass(frozen=True, slots=True)
class Sample:
    """`at` in seconds since the start."""

    at: float
    memory_mib: float
    files: float
    threads: float
    tasks: float
    database_mib: float


@dataclass(frozen=True, slots=True)
class Allowed:
    """How much the trend may rise over the second half: a share of the mean, at least an amount."""

    share: float
    amount: float


MEASURES: Mapping[str, Allowed] = {
    "memory_mib": Allowed(0.05, 8.0),
    "files": Allowed(0.1, 4.0),
    "threads": Allowed(0.1, 3.0),
    "tasks": Allowed(0.1, 5.0),
    "database_mib": Allowed(0.1, 1.0),
}


def sample(controller: ControllerProcess, pid: int, at: float) -> Sample:
    """The number of tasks is that of the request before."""
    tasks = controller.tasks.read_text() if controller.tasks.exists() else ""
    controller.count_tasks()
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines() if ":" in line)
    store = [controller.store.with_name(controller.store.name + suffix) for suffix in _STORE_SUFFIXES]
    return Sample(
        at=at,
        memory_mib=process_use(pid).resident_mib,
        files=len(list(Path(f"/proc/{pid}/fd").iterdir())),
        threads=int(status["Threads"]),
        tasks=int(tasks or 0),
        database_mib=sum(each.stat().st_size for each in store if each.exists()) / 2**20,
    )


def rises(samples: Sequence[Sample]) -> dict[str, float]:
    """By measure: by how much its trend rises over the second half, where that is more than allowed."""
    half = samples[len(samples) // 2 :]
    found = {}
    for name, allowed in MEASURES.items():
        values = [getattr(each, name) for each in half]
        rise = trend([each.at for each in half], values)
        if rise > max(allowed.amount, allowed.share * statistics.fmean(values)):
            found[name] = rise
    return found


def trend(times: Sequence[float], values: Sequence[float]) -> float:
    """How much the straight line through the values rises from the first time to the last."""
    if len(times) < 2:
        return 0.0
    slope, _ = statistics.linear_regression(times, values)
    return slope * (times[-1] - times[0])
