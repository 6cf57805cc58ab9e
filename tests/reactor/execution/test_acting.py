"""Which mode may be used: without Lease, journal or in a pause."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from reactor.app import Borders, wire
from reactor.execution.acting import Acting, Pause
from reactor.settings.model import Mode
from tests.support.clock import VirtualClock
from tests.support.cluster import make_settings
from tests.support.rows import RowsKept
from tests.support.writer import FakeWriter


@dataclass
class Leader:
    leads: bool = True
    may_bind: bool = True
    problem: str = ""


@pytest.mark.parametrize(
    ("leader", "journal", "paused", "modes"),
    [
        (Leader(), "", False, ("observe", "bind", "act")),
        (Leader(), "", True, ("observe", "bind", "bind")),
        (Leader(), "the CRD is missing", False, ("observe", "bind", "bind")),
        (Leader(False, True, "no right to the Lease"), "x", False, ("observe", "bind", "bind")),
        (Leader(False, False, "a leads"), "x", False, ("observe", "observe", "observe")),
    ],
)
def test_the_mode_is_never_more_than_is_safe(
    leader: Leader, journal: str, paused: bool, modes: tuple[str, ...]
) -> None:
    acting = Acting(VirtualClock(), leader, journal, Pause(0.0) if paused else None)
    assert [acting.limited(make_settings(mode=mode)).mode for mode in Mode] == [Mode(mode) for mode in modes]
    assert bool(acting.hindrance) == (modes[2] != "act")


def test_a_pause_ends_by_itself() -> None:
    clock = VirtualClock()
    acting = Acting.always(clock)
    acting.pause = Pause(clock.now(), clock.now() + 60, "release day")
    assert acting.hindrance.endswith("until 2023-11-14T22:14:20Z: release day")
    clock.set(clock.now() + 60)
    assert acting.hindrance == ""


def test_the_metrics_say_what_the_settings_want_and_what_keeps_from_it() -> None:
    """The alert RematchNotActing compares them: the first must stay 1 in a pause."""
    clock, leader = VirtualClock(), Leader()
    acting = Acting(clock, leader, "")
    settings = make_settings(mode="act")
    controller = wire(Borders(clock, FakeWriter().writer, RowsKept().store, lambda: settings, acting=acting))
    names = ("rematch_acting", "rematch_leader", "rematch_paused", "rematch_journal_ok")

    def values() -> list[float | None]:
        return [controller.instruments.registry.get_sample_value(name) for name in names]

    assert values() == [1, 1, 0, 1]
    acting.pause = Pause(clock.now())
    assert values() == [1, 1, 1, 1]
    leader.leads = False
    acting.journal_problem = "gone"
    assert values() == [1, 0, 1, 0]
