"""What /healthz and /readyz say, and why."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from reactor.app import LiveController
from reactor.cluster.kinds import Kind
from reactor.cluster.watch import WatchState
from reactor.web.readers import HealthReader
from tests.support.cluster import make_pod
from tests.support.moves import active_moves, make_move
from tests.support.rig import Rig


def reader(rig: Rig, *states: WatchState) -> HealthReader:
    live = SimpleNamespace(
        controller=rig.controller,
        watch=SimpleNamespace(states=states),
        metrics=SimpleNamespace(problems={}),
        leading=SimpleNamespace(documents=SimpleNamespace(problem="")),
        latency=SimpleNamespace(problem=""),
        settings=SimpleNamespace(restored=False),
    )
    return HealthReader(cast(LiveController, live))


@pytest.fixture
def rig() -> Rig:
    rig = Rig()
    rig.sync()
    return rig


@pytest.mark.parametrize(
    ("silent", "error", "ready"),
    [(170, "", True), (181, "", False), (50, "reset", True), (61, "reset", False)],
)
def test_a_stale_watch_is_named(rig: Rig, silent: float, error: str, ready: bool) -> None:
    reasons = list(reader(rig, WatchState(Kind.PODS, 1, error, False, silent)).unready())
    assert (reasons == []) is ready
    assert ready or reasons == [f"pods: nothing heard for {silent} s ({error or 'no error'})"]


def test_pods_that_are_late_make_it_unready(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rig.controller.binding_loop, "late", lambda: ["shop/web-1 waits"])
    assert list(reader(rig).unready()) == ["shop/web-1 waits"]


def test_failures_are_shown_and_stalled_loops_make_it_unhealthy(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    store: Any = SimpleNamespace(health=SimpleNamespace(error=None))
    monkeypatch.setattr(type(rig.rows), "health", store.health, raising=False)
    assert list(reader(rig).stalled()) == []
    rig.controller.failures.report("cycle", ValueError("odd"))
    assert list(reader(rig).problems()) == ["cycle failed and is tried again: ValueError: odd"]

    rig.controller.binding_loop._heartbeat.beat()
    rig.clock.set(rig.clock.now() + 61)
    assert list(reader(rig).stalled()) == ["the binding loop has not run for 61 s"]


def test_a_move_that_is_refused_half_way_is_a_problem(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    stuck = make_move(make_pod(), "n2", "undoing", refused="takeBack: pods is forbidden")
    monkeypatch.setattr(rig.controller.executor, "active_moves", lambda: active_moves({stuck: make_pod()}))
    monkeypatch.setattr(type(rig.rows), "health", SimpleNamespace(error=None), raising=False)
    (problem,) = reader(rig).problems()
    assert "shop/web-1 cannot go on: takeBack: pods is forbidden" in problem
