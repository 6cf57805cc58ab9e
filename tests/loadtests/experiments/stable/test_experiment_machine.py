from __future__ import annotations

import os

import pytest

from loadtests.experiments.stable.real.machine import (
    Reading,
    busy_seconds,
    cores_used,
    machine_between,
    seconds_per_round,
)
from loadtests.workloads.load_tools import LoadResult


def test_busy_is_all_but_idle_and_waiting() -> None:
    ticks = os.sysconf("SC_CLK_TCK")
    stat = f"cpu  {ticks} {ticks} {ticks} {50 * ticks} {7 * ticks} 0 {ticks} 0 0 0\ncpu0 1 2 3 4 5 6 7 8 9 10\n"
    assert busy_seconds(stat) == 4.0


def test_what_strangers_use_is_taken_from_what_is_not_promised() -> None:
    before = Reading(0.0, 100.0, {"node1": 10.0, "node2": 5.0})
    after = Reading(10.0, 116.0, {"node1": 16.0, "node2": 7.5})
    assert cores_used(before, after) == {"node1": 0.6, "node2": 0.25}
    machine = machine_between(before, after, 0.85, LoadResult((), 0.0, 1.5, 0.0), 0.2)
    assert machine.outside == (os.cpu_count() or 1) - 0.85
    assert machine.outside - machine.outside_idle == pytest.approx(1.6 - 0.85)


def test_the_cpu_of_a_round_does_not_depend_on_when_the_readings_were_taken() -> None:
    """Ten rounds of 0.4 CPU-seconds within 10 s, and within 14 s because the tool was slow to start."""
    tight = seconds_per_round(Reading(0.0, 0.0, {"n": 0.0}), Reading(10.0, 0.0, {"n": 4.5}), 0.05, 10)
    wide = seconds_per_round(Reading(0.0, 0.0, {"n": 0.0}), Reading(14.0, 0.0, {"n": 4.7}), 0.05, 10)
    assert tight == pytest.approx(wide) == pytest.approx(0.4)
