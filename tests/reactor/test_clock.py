"""The wall clock may be stepped at any time: by NTP, by an administrator, by a restored virtual machine."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactor.clock import SLEW, SystemClock

DAY = 86400.0


@dataclass
class Machine:
    """`passes` lets real time pass; `steps` changes the wall clock alone."""

    elapsed: float = 1000.0
    wall: float = 1.7e9

    def clock(self) -> SystemClock:
        return SystemClock(lambda: self.wall, lambda: self.elapsed)

    def passes(self, seconds: float) -> None:
        self.elapsed += seconds
        self.wall += seconds


@pytest.mark.parametrize("step", [DAY, -DAY, 3600.0, -3600.0])
def test_a_cooldown_outlives_a_step_and_ends(step: float) -> None:
    machine = Machine()
    clock = machine.clock()
    ends = clock.now() + 600
    machine.passes(60)
    machine.wall += step
    assert clock.now() < ends
    machine.passes(600 * (1 - SLEW) - 60 - 1)
    assert clock.now() < ends
    machine.passes(600 / (1 - SLEW))
    assert clock.now() >= ends


def test_without_a_step_it_is_the_wall_clock() -> None:
    machine = Machine()
    clock = machine.clock()
    for _ in range(100):
        machine.passes(17.5)
        assert clock.now() == pytest.approx(machine.wall)
    assert clock.behind_wall == pytest.approx(0.0, abs=1e-3)


@pytest.mark.parametrize("step", [5.0, -5.0, 3600.0, -3600.0])
def test_it_finds_the_wall_clock_again(step: float) -> None:
    machine = Machine()
    clock = machine.clock()
    machine.wall += step
    assert clock.behind_wall == pytest.approx(step)
    for _ in range(1000):
        machine.passes(abs(step) / SLEW / 900)
        clock.now()
    assert clock.now() == pytest.approx(machine.wall)


def test_a_suspended_machine_has_lost_the_time() -> None:
    machine = Machine()
    clock = machine.clock()
    before = clock.monotonic()
    machine.passes(7200)
    assert clock.monotonic() - before == 7200
    assert clock.now() == pytest.approx(machine.wall)


@given(st.lists(st.tuples(st.floats(0, 1e4), st.floats(-1e6, 1e6)), max_size=30))
def test_time_never_goes_back_and_never_jumps(history: list[tuple[float, float]]) -> None:
    machine = Machine()
    clock = machine.clock()
    last = clock.now()
    for passed, step in history:
        machine.passes(passed)
        machine.wall += step
        now = clock.now()
        assert (1 - SLEW) * passed - 1e-3 <= now - last <= (1 + SLEW) * passed + 1e-3
        last = now
