"""Moves that are counted by what happens to the pods."""

from __future__ import annotations

import math
from typing import Any

import pytest

from loadtests.experiments.stable.driver import MoveSpan
from loadtests.experiments.stable.real.observed_moves import ObservedMoves
from loadtests.workloads.api import Changed, Listed
from tests.support.clock import VirtualClock


def pod(name: str, *, ready: bool = False, deleting: bool = False, labels: bool = True) -> dict[str, Any]:
    meta: dict[str, Any] = {"uid": name, "name": name, "labels": {"app": "app-01"} if labels else {}}
    if deleting:
        meta["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return {"metadata": meta, "status": {"conditions": [{"type": "Ready", "status": str(ready)}]}}


async def test_a_surge_lasts_until_the_old_pod_is_on_its_way_out() -> None:
    clock = VirtualClock(100.0)
    observed = ObservedMoves(clock)
    observed.see(Listed((pod("app-01-abc-old", ready=True),)))
    assert observed.spans() == ()
    observed.see(Changed("ADDED", pod("app-01-abc-new")))
    await clock.advance(2.0)
    observed.see(Changed("MODIFIED", pod("app-01-abc-new", ready=True)))
    assert observed.spans() == (MoveSpan("app-01", 100.0, math.inf),)
    assert observed.take().moves == 0
    await clock.advance(3.0)
    observed.see(Changed("MODIFIED", pod("app-01-abc-old", ready=True, deleting=True, labels=False)))
    (span,) = observed.spans()
    assert span.ended == pytest.approx(105.0)
    assert observed.take().moves == 1
    assert observed.take().moves == 0


def test_a_pod_that_never_becomes_ready_is_a_move_without_end() -> None:
    observed = ObservedMoves(VirtualClock(100.0))
    observed.see(Listed((pod("app-01-abc-old", ready=True),)))
    observed.see(Changed("ADDED", pod("app-01-abc-new")))
    observed.see(Changed("DELETED", pod("app-01-abc-old")))
    assert observed.take().moves == 0
    assert observed.spans() == (MoveSpan("app-01", 100.0, math.inf),)
