"""Records of the experiment as they might have been measured."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from loadtests.experiments.stable.design import KUBE_SCHEDULER, STEPS, Arm
from loadtests.experiments.stable.records import StepRecord


def make_record(arm: Arm, seed: int, rate: int, availability: float, **more: Any) -> StepRecord:
    plain = StepRecord(
        world="real",
        tool="vegeta",
        phase=arm.phase,
        planner=arm.planner,
        threshold=arm.threshold,
        seed=seed,
        paper_rate=rate,
        rate=rate / 25,
        seconds=5.0,
        requests=100,
        failures=0,
        availability=availability,
        p50_ms=1.0,
        p95_ms=2.0,
        p99_ms=3.0,
    )
    return replace(plain, **more)


def series(arm: Arm, seed: int, values: dict[int, float], **more: Any) -> list[StepRecord]:
    return [make_record(arm, seed, step.paper_rate, values.get(step.paper_rate, 1.0), **more) for step in STEPS]


def failing(seed: int, at: int = 90) -> list[StepRecord]:
    """The default placement, short of CPU from a step on."""
    values = {rate: 0.9 - rate / 1000 + seed / 100 for rate in range(at, 151, 10)}
    return series(KUBE_SCHEDULER, seed, values)
