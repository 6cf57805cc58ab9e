"""The draw of faults: everything comes from the seed, and every kind comes up."""

from __future__ import annotations

from collections import Counter

from loadtests.chaos.faults import AT_REQUESTS, FaultKind, draw_faults
from loadtests.chaos.world import SETTINGS, settings_text
from reactor.settings.load import parse_settings
from reactor.settings.model import Mode


def test_a_seed_always_gives_the_same_faults() -> None:
    assert draw_faults(7, 30, 30.0) == draw_faults(7, 30, 30.0)
    assert draw_faults(7, 30, 30.0) != draw_faults(8, 30, 30.0)


def test_faults_come_in_order_within_the_round() -> None:
    times = [fault.at for fault in draw_faults(1, 50, 20.0)]
    assert times == sorted(times)
    assert 0 <= times[0] <= times[-1] <= 20


def test_only_the_kinds_that_were_asked_for() -> None:
    drawn = draw_faults(3, 20, 30.0, {FaultKind.LOST_ANSWER, FaultKind.KILL_PASSED})
    assert {fault.kind for fault in drawn} == {FaultKind.LOST_ANSWER, FaultKind.KILL_PASSED}


def test_a_whole_run_has_every_kind_often_enough() -> None:
    drawn = Counter(fault.kind for seed in range(1, 41) for fault in draw_faults(seed, 30, 30.0))
    assert min(drawn[kind] for kind in FaultKind) >= 5


def test_faults_at_requests_say_at_which() -> None:
    for fault in draw_faults(1, 300, 30.0):
        assert bool(fault.steps) is (fault.kind in AT_REQUESTS)


def test_the_settings_of_a_run_are_valid() -> None:
    assert parse_settings(settings_text(SETTINGS), "chaos").mode is Mode.ACT
