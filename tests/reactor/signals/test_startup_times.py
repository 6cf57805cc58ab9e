"""How long workloads take to start: measured from the binding, robust against outliers, bounded, restored."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from reactor.cluster.records import Owner, Pod
from reactor.signals import startup_times
from reactor.signals.startup_times import StartupTimes
from reactor.signals.workloads import workload_key
from storage.rows import StartupRow
from tests.support.clock import NOW
from tests.support.cluster import make_owner, make_pending, make_pod

WEB = workload_key(make_pod("web-1"))


def start(times: StartupTimes, name: str, seconds: float, **fields: Any) -> Pod:
    pending = make_pending(name, created=NOW - 5, **fields)
    times.observe_pod(None, pending, NOW)
    running = replace(pending, node="n1", phase="Running", scheduled=NOW)
    times.observe_pod(pending, running, NOW + 1)
    ready = replace(running, ready=True, ready_since=NOW + seconds)
    times.observe_pod(running, ready, NOW + seconds + 1)
    return ready


def test_a_start_is_measured_from_the_binding_to_ready() -> None:
    times = StartupTimes()
    assert times.freeze() == {}
    start(times, "web-1", 12.0)
    assert times.freeze() == {WEB: 12.0}


def test_without_the_time_of_the_binding_it_is_measured_from_the_creation() -> None:
    times = StartupTimes()
    pending = make_pending("web-1", created=NOW)
    times.observe_pod(None, pending, NOW)
    times.observe_pod(pending, replace(pending, node="n1", phase="Running", ready=True), NOW + 7)
    assert times.freeze() == {WEB: 7.0}


def test_one_slow_start_does_not_change_the_estimate() -> None:
    times = StartupTimes()
    for number, seconds in enumerate([4.0, 5.0, 900.0, 4.0, 6.0]):
        start(times, f"web-{number}", seconds)
    assert times.freeze() == {WEB: 5.0}


def test_the_estimate_follows_a_version_that_starts_slower() -> None:
    times = StartupTimes()
    for number in range(9):
        start(times, f"web-{number}", 4.0)
    for number in range(9, 14):
        start(times, f"web-{number}", 60.0)
    assert times.freeze() == {WEB: 60.0}


def test_what_was_frozen_does_not_change() -> None:
    times = StartupTimes()
    start(times, "web-1", 4.0)
    before = times.freeze()
    start(times, "db-1", 9.0)
    assert len(before) == 1
    assert len(times.freeze()) == 2


@pytest.mark.parametrize("owner", [None, Owner("Job", "batch", "uid-batch")])
def test_pods_that_nobody_starts_again_are_left_out(owner: Owner | None) -> None:
    times = StartupTimes()
    start(times, "web-1", 4.0, owner=owner)
    assert times.freeze() == {}


def test_a_pod_that_becomes_ready_again_or_was_there_before_us_is_no_start() -> None:
    times = StartupTimes()
    ready = start(times, "web-1", 4.0)
    unready = replace(ready, ready=False, ready_since=None)
    times.observe_pod(ready, unready, NOW + 500)
    times.observe_pod(unready, replace(ready, ready_since=NOW + 600), NOW + 600)
    old = make_pod("db-1", ready=False)
    times.observe_pod(None, old, NOW)
    times.observe_pod(old, replace(old, ready=True, ready_since=NOW + 1), NOW + 1)
    assert times.freeze() == {WEB: 4.0}


def test_a_pod_that_is_gone_or_failed_before_it_was_ready_is_no_start() -> None:
    times = StartupTimes()
    for number, end in enumerate([None, make_pending("web-1", phase="Failed")]):
        pending = make_pending("web-1", uid=f"u{number}")
        times.observe_pod(None, pending, NOW)
        times.observe_pod(pending, None if end is None else replace(end, uid=f"u{number}"), NOW + 1)
    assert times.freeze() == {}


def test_rows_hold_what_changed_and_are_restored() -> None:
    times = StartupTimes()
    start(times, "web-1", 4.0)
    start(times, "web-2", 6.0)
    rows = times.export(NOW + 100)
    assert rows == [StartupRow(WEB, NOW + 100, (4.0, 6.0))]
    assert times.export(NOW + 200) == []
    restored = StartupTimes()
    restored.restore([*rows, StartupRow("bad", 0.0, (float("nan"), -1.0, 1e9))])
    assert restored.freeze() == {WEB: 6.0}
    assert restored.export(NOW) == []


def test_the_number_of_workloads_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(startup_times, "REMEMBERED", 3)
    times = StartupTimes()
    for number in range(5):
        start(times, f"web-{number}", 4.0, owner=make_owner(f"app{number}-1a2b"))
    assert [key.rpartition("/")[2] for key in times.freeze()] == ["app2", "app3", "app4"]
    assert len(times.export(NOW)) == 3
