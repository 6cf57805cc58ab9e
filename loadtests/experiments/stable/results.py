"""Figures of one world's records: means over seeds, paired differences, the rate at which the default first fails."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

from loadtests.experiments.stable.design import KUBE_SCHEDULER, STEPS, Arm, Step
from loadtests.experiments.stable.records import About, DataFolder, StepRecord, latest
from loadtests.paired_statistics import Interval, paired_interval

FAILS_BELOW = 0.995
"""Mean availability below which a placement counts as failing at a rate."""
NEAR_CAPACITY = 0.9
"""Up to this share of what all nodes can serve, placement should matter."""


_WORLDS = ("real", "simulated")


@dataclass(frozen=True, slots=True)
class Results:
    """The valid steps of one world; what was measured on a saturated machine is left out of all figures."""

    records: Sequence[StepRecord]
    left_out: Sequence[StepRecord]

    @classmethod
    def of(cls, records: Iterable[StepRecord]) -> Results:
        records = list(records)
        return cls([one for one in records if one.valid], [one for one in records if not one.valid])

    @property
    def invalid(self) -> int:
        return len(self.left_out)

    def arms(self) -> list[Arm]:
        return list(dict.fromkeys(record.arm for record in (*self.records, *self.left_out)))

    def measured(self, arm: Arm) -> list[StepRecord]:
        """Valid or not."""
        return [record for record in (*self.records, *self.left_out) if record.arm == arm]

    def seeds(self, arm: Arm) -> set[int]:
        """That were measured; of some there may be no valid step."""
        return {record.seed for record in self.measured(arm)}

    def of_arm(self, arm: Arm) -> list[StepRecord]:
        return [record for record in self.records if record.arm == arm]

    def at(self, arm: Arm, step: Step) -> list[StepRecord]:
        """One per seed."""
        return [record for record in self.of_arm(arm) if record.paper_rate == step.paper_rate]

    def availability(self, arm: Arm, step: Step) -> float | None:
        found = self.at(arm, step)
        return fmean(record.availability for record in found) if found else None

    def first_failing(self) -> Step | None:
        """Of the default placement."""
        for step in STEPS:
            availability = self.availability(KUBE_SCHEDULER, step)
            if availability is not None and availability < FAILS_BELOW:
                return step
        return None

    def differences(self, arm: Arm, step: Step, other: Arm = KUBE_SCHEDULER) -> dict[int, float]:
        """By seed: the arm's availability less the other's; only where both are valid."""
        theirs = {record.seed: record.availability for record in self.at(other, step)}
        ours = {record.seed: record.availability for record in self.at(arm, step)}
        return {seed: ours[seed] - theirs[seed] for seed in ours if seed in theirs}


def interval_of(differences: Iterable[float]) -> Interval | None:
    """None with fewer than two: one difference says nothing about chance."""
    values = list(differences)
    return paired_interval(values) if len(values) > 1 else None


def window(first: Step) -> list[Step]:
    """From the default placement's first failure to nine tenths of what all nodes together can serve."""
    return [step for step in STEPS if step.index >= first.index and step.share <= NEAR_CAPACITY]


def beyond() -> list[Step]:
    return [step for step in STEPS if step.share > NEAR_CAPACITY]


def rates_of(steps: Sequence[Step]) -> str:
    return f"{steps[0].paper_rate} to {steps[-1].paper_rate}" if steps else "nowhere"


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
    for name in _WORLDS:
        about = data.about(name)
        records = latest(data.records(name))
        if about is not None and records:
            found.append(World(about, tuple(records), Results.of(records)))
    return found
