"""LATENCY's three tests, what is varied beside them, and the runs in their order."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

RANKS = range(1, 9)
"""Workers by their distance: worker of rank 1 is the nearest."""
DELAY = 0.1
"""Seconds each way to the worker of rank 1; rank 8 has eight times as much."""
CHANGED_RANK, CHANGED_DELAY = 8, 0.05
"""Test 3: this worker comes nearer than all others."""
LOSS = 0.2
SILENCE = 60.0
"""Seconds for which the broker says nothing."""
QUIET = 30.0
"""The planner's quiet time: the thesis'."""
REQUESTS = 5
"""Of one measurement: the thesis'."""


class Arm(StrEnum):
    REMATCH = "latency"
    PUBLISHED = "latency-published"
    """The same system with the thesis' rule."""
    ALONE = "left alone"
    """The same start, and nobody moves anything."""
    SCHEDULER = "kube-scheduler"
    """Its own choice, and nobody moves anything."""

    @property
    def moves(self) -> bool:
        return self in (Arm.REMATCH, Arm.PUBLISHED)


class Trouble(StrEnum):
    NONE = "none"
    LOSS = "20 % loss"
    SILENCE = "silent broker"


@dataclass(frozen=True, slots=True)
class Start:
    """Ranks of the workers at the start."""

    targets: tuple[int, int]
    third: int
    """Of the third target of the manifest; our choice, since the text places two."""
    probe: int
    target_moves: int
    """The most that a round may take with two targets."""


STARTS: Mapping[int, Start] = {
    1: Start((6, 8), 5, 7, 3),
    2: Start((2, 6), 7, 5, 2),
    3: Start((4, 8), 7, 6, 3),
}
MOST_ITERATIONS = 6
CHANGING_TEST = 3


@dataclass(frozen=True, slots=True)
class Case:
    arm: Arm
    test: int
    targets: int
    trouble: Trouble
    seed: int

    @property
    def key(self) -> tuple[str, int, int, str, int]:
        return (self.arm, self.test, self.targets, self.trouble, self.seed)

    @property
    def start(self) -> tuple[int, ...]:
        start = STARTS[self.test]
        return (*start.targets, start.third)[: self.targets]

    @property
    def probe(self) -> int:
        return STARTS[self.test].probe

    @property
    def best(self) -> tuple[int, ...]:
        return tuple(RANKS)[: self.targets]

    @property
    def best_after_change(self) -> tuple[int, ...]:
        return (*tuple(RANKS)[: self.targets - 1], CHANGED_RANK)

    @property
    def expected_seconds(self) -> float:
        """At full delays."""
        if not self.arm.moves:
            return 40.0
        seconds = 330.0 if self.test == CHANGING_TEST else 150.0
        return seconds if self.trouble is Trouble.NONE else 1.5 * seconds

    def __str__(self) -> str:
        trouble = "" if self.trouble is Trouble.NONE else f", {self.trouble}"
        return f"test {self.test}, {self.targets} targets{trouble}, {self.arm}, seed {self.seed}"


def worker_names(seed: int) -> dict[int, str]:
    """By rank; the order of the names says nothing about distance."""
    numbers = list(RANKS)
    random.Random(f"names {seed}").shuffle(numbers)
    return {rank: f"worker-{number}" for rank, number in zip(RANKS, numbers, strict=True)}


def cases(seeds: int, *, only_first: bool = False) -> Sequence[Case]:
    """All of a seed before the next, the longest first. `only_first`: test 1, which shows that everything works."""
    if only_first:
        return [Case(Arm.REMATCH, 1, 2, Trouble.NONE, 1)]
    return [case for seed in range(1, seeds + 1) for case in _of_seed(seed)]


def _of_seed(seed: int) -> Sequence[Case]:
    found = []
    for targets in (2, 3):
        for test in STARTS:
            found += [Case(arm, test, targets, Trouble.NONE, seed) for arm in (Arm.REMATCH, Arm.ALONE)]
        found.append(Case(Arm.SCHEDULER, 1, targets, Trouble.NONE, seed))
    found += [Case(Arm.REMATCH, test, 2, Trouble.LOSS, seed) for test in STARTS]
    found.append(Case(Arm.REMATCH, 1, 2, Trouble.SILENCE, seed))
    found += [Case(Arm.PUBLISHED, test, 2, Trouble.NONE, seed) for test in STARTS]
    return sorted(found, key=lambda case: case.expected_seconds, reverse=True)
