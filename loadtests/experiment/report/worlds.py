"""What the report is about: for each world that was measured, how and what."""

from __future__ import annotations

from dataclasses import dataclass

from loadtests.experiment.records import About, DataFolder, StepRecord
from loadtests.experiment.runner import latest
from loadtests.experiment.statistics import Results

NAMES = ("real", "simulated")


@dataclass(frozen=True, slots=True)
class World:
    about: About
    records: tuple[StepRecord, ...]
    """Invalid ones included."""
    results: Results

    @property
    def title(self) -> str:
        return "real nodes" if self.about.world == "real" else "simulated time"


def worlds_in(data: DataFolder) -> list[World]:
    found = []
    for name in NAMES:
        about = data.about(name)
        records = latest(data.records(name))
        if about is not None and records:
            found.append(World(about, tuple(records), Results.of(records)))
    return found
