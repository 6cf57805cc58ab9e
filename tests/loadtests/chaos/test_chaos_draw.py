"""The draw of faults: everything comes from the seed, and every kind comes up."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec
import pytest

from loadtests.chaos.faults import AT_REQUESTS, KILLS, FaultKind, draw_faults
from loadtests.chaos.requests import step_of
from loadtests.chaos.world import SETTINGS, settings_text
from loadtests.chaos.write_kinds import WriteKind, workloads_with, write_kind
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
    drawn = Counter(fault.kind for seed in range(1, 14) for fault in draw_faults(seed, 80, 75.0))
    assert min(drawn[kind] for kind in FaultKind) >= 5


def test_faults_at_requests_say_at_which() -> None:
    for fault in draw_faults(1, 300, 30.0):
        assert bool(fault.steps or fault.write) is (fault.kind in AT_REQUESTS)


def test_kills_hit_every_step_in_every_way() -> None:
    drawn = [fault for seed in range(1, 14) for fault in draw_faults(seed, 80, 30.0) if fault.kind in KILLS]
    aims = Counter((fault.write, fault.kind) for fault in drawn)
    assert set(aims) == {(write, kind) for write in WriteKind for kind in KILLS}
    assert min(Counter(fault.write for fault in drawn).values()) >= 3


_PODS = "/api/v1/namespaces/chaos/pods/web-1"
_SCALE = "/apis/apps/v1/namespaces/chaos/deployments/web/scale"


@pytest.mark.parametrize(
    ("path", "method", "body", "kind"),
    [
        (_SCALE, "PUT", {"spec": {"replicas": 3}}, WriteKind.SCALE_UP),
        (_SCALE, "PUT", {"spec": {"replicas": 2}}, WriteKind.SCALE_DOWN),
        (_PODS, "PATCH", {"metadata": {"labels": {"pod-template-hash": None}}}, WriteKind.RELEASE),
        (_PODS, "PATCH", {"metadata": {"labels": {"pod-template-hash": "7d9", "app": "web"}}}, WriteKind.TAKE_BACK),
        (_PODS, "PATCH", {"metadata": {"labels": {"app": None}}}, WriteKind.DETACH),
        (_PODS, "PATCH", {"metadata": {"annotations": {"cost": "-1"}}}, WriteKind.COST),
        (f"{_PODS}/status", "PATCH", {"status": {}}, None),
        (f"{_PODS}/eviction", "POST", {}, WriteKind.EVICT),
        ("/api/v1/namespaces/chaos/pods/free/eviction", "POST", {}, WriteKind.REMOVE),
        (f"{_PODS}/binding", "POST", {}, WriteKind.BIND),
        (_PODS, "GET", {}, None),
    ],
)
def test_which_write_of_a_move_a_request_is(path: str, method: str, body: dict[str, Any], kind: WriteKind) -> None:
    assert write_kind(step_of(method, path), path, msgspec.json.encode(body), {"web": 2}, {"free"}) is kind


def test_every_step_of_a_move_has_workloads_that_take_it() -> None:
    with_own = set(WriteKind) - {WriteKind.BIND, WriteKind.JOURNAL, WriteKind.STATE, WriteKind.LEASE}
    assert all(workloads_with(kind) for kind in with_own)


def test_the_settings_of_a_run_are_valid() -> None:
    assert parse_settings(settings_text(SETTINGS), "chaos").mode is Mode.ACT
