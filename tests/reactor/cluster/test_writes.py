from __future__ import annotations

import asyncio
from functools import partial

import msgspec
import pytest

from reactor.cluster.api import MERGE_PATCH, ApiResponse
from reactor.cluster.records import Pod
from reactor.cluster.writes import (
    BACKGROUND_ANNOTATION,
    Announcement,
    Binding,
    ClusterWriter,
    EventWriter,
    Eviction,
    gather_limited,
)
from reactor.errors import Forbidden, NotFound, Unreachable
from tests.reactor.cluster.faulty import FaultyConnection
from tests.reactor.cluster.helpers import FakeClock
from tests.reactor.cluster.truth import Truth, status_json

POD = Pod("uid-1", "ns", "web-1", "1", {}, {}, 0.0)
LATE = Unreachable("no response within 15 s")


def pod_now(uid: str, node: str | None = None) -> ApiResponse:
    return ApiResponse(200, msgspec.json.encode({"metadata": {"uid": uid}, "spec": {"nodeName": node}}))


def writer(*answers: ApiResponse | Exception) -> tuple[ClusterWriter, FaultyConnection]:
    connection = FaultyConnection(Truth(), answers=list(answers))
    return ClusterWriter(connection, FakeClock()), connection


async def test_an_eviction_names_the_uid_it_means() -> None:
    writing, connection = writer(ApiResponse(201, b"{}"))
    answer = await writing.evict(POD)
    assert answer.outcome is Eviction.ACCEPTED
    [call] = connection.calls
    assert (call.method, call.path) == ("POST", "/api/v1/namespaces/ns/pods/web-1/eviction")
    assert call.body == {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": "web-1", "namespace": "ns"},
        "deleteOptions": {"preconditions": {"uid": "uid-1"}},
    }


@pytest.mark.parametrize(
    "answers",
    [
        (LATE, ApiResponse(404, status_json(404, "not found"))),
        (ApiResponse(503, b""), ApiResponse(404, status_json(404, "not found"))),
        (LATE, ApiResponse(409, status_json(409, "UID differs")), pod_now("uid-2")),
    ],
)
async def test_a_pod_that_is_gone_at_a_repetition_was_evicted_by_us(answers: tuple[ApiResponse | Exception]) -> None:
    writing, _ = writer(*answers)
    assert (await writing.evict(POD)).outcome is Eviction.ACCEPTED


async def test_a_pod_that_is_evicted_in_the_background_is_followed() -> None:
    pod = Pod("uid-1", "ns", "vm-1", "1", {}, {BACKGROUND_ANNOTATION: ""}, 0.0)
    denied = ApiResponse(429, status_json(429, "admission webhook: Eviction triggered evacuation of VMI"))
    budget = ApiResponse(429, status_json(429, "budget", causes=[{"reason": "DisruptionBudget", "message": "m"}]))

    assert (await writer(denied)[0].evict(pod)).outcome is Eviction.BACKGROUND
    assert (await writer(denied)[0].evict(POD)).outcome is Eviction.THROTTLED
    assert (await writer(budget)[0].evict(pod)).outcome is Eviction.PDB


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        (
            ApiResponse(429, status_json(429, "budget", causes=[{"reason": "DisruptionBudget", "message": "m"}])),
            Eviction.PDB,
        ),
        (ApiResponse(429, status_json(429, "too many requests", retryAfterSeconds=4)), Eviction.THROTTLED),
        (
            ApiResponse(
                500, status_json(500, "This pod has more than one PodDisruptionBudget, which the eviction ...")
            ),
            Eviction.SEVERAL_PDBS,
        ),
        (ApiResponse(500, status_json(500, "etcd")), Eviction.FAILED),
        (ApiResponse(404, status_json(404, "not found")), Eviction.GONE),
        (ApiResponse(403, status_json(403, "cannot create pods/eviction")), Eviction.FORBIDDEN),
        (ApiResponse(422, status_json(422, "invalid")), Eviction.FAILED),
    ],
)
async def test_refused_evictions_are_distinguished(answer: ApiResponse, outcome: Eviction) -> None:
    writing, connection = writer(answer)
    got = await writing.evict(POD)
    assert got.outcome is outcome
    assert got.message
    assert len(connection.calls) == 1, "a refusal is not repeated"


async def test_retry_after_comes_along() -> None:
    writing, _ = writer(ApiResponse(429, b"", 3.0))
    answer = await writing.evict(POD)
    assert (answer.outcome, answer.retry_after) == (Eviction.THROTTLED, 3.0)


@pytest.mark.parametrize(
    ("now", "outcome"),
    [
        (pod_now("uid-2"), Eviction.REPLACED),
        (pod_now("uid-1"), Eviction.FAILED),
        (ApiResponse(404, b""), Eviction.GONE),
        (ApiResponse(403, status_json(403, "cannot get pods")), Eviction.FORBIDDEN),
        (ApiResponse(503, b""), Eviction.UNKNOWN),
        (ApiResponse(200, b"nonsense"), Eviction.UNKNOWN),
    ],
)
async def test_a_conflict_is_resolved_by_reading_the_pod(now: ApiResponse, outcome: Eviction) -> None:
    writing, _ = writer(ApiResponse(409, status_json(409, "precondition")), now)
    assert (await writing.evict(POD)).outcome is outcome


async def test_an_eviction_that_timed_out_is_repeated_with_its_precondition_a_few_times() -> None:
    writing, connection = writer(LATE, ApiResponse(503, b""), ApiResponse(201, b"{}"))
    assert (await writing.evict(POD)).outcome is Eviction.ACCEPTED
    assert connection.calls[0] == connection.calls[1] == connection.calls[2]
    writing, connection = writer(LATE, LATE, LATE, ApiResponse(201, b"{}"))
    assert (await writing.evict(POD)).outcome is Eviction.UNKNOWN
    assert len(connection.calls) == 3
    writing, _ = writer(*[ApiResponse(504, b"")] * 3)
    assert (await writing.evict(POD)).outcome is Eviction.UNKNOWN


async def test_a_binding_names_pod_uid_and_node() -> None:
    writing, connection = writer(ApiResponse(201, b"{}"))
    assert (await writing.bind(POD, "node1")).outcome is Binding.BOUND
    [call] = connection.calls
    assert call.path == "/api/v1/namespaces/ns/pods/web-1/binding"
    assert call.body is not None
    assert call.body["metadata"] == {"name": "web-1", "namespace": "ns", "uid": "uid-1"}
    assert call.body["target"] == {"apiVersion": "v1", "kind": "Node", "name": "node1"}


@pytest.mark.parametrize(
    ("answers", "outcome"),
    [
        ([ApiResponse(409, b"{}"), pod_now("uid-1", "node2")], Binding.ALREADY_BOUND),
        ([LATE, ApiResponse(409, b"{}"), pod_now("uid-1", "node1")], Binding.BOUND),
        ([ApiResponse(409, b"{}"), pod_now("uid-1")], Binding.FAILED),
        ([ApiResponse(409, b"{}"), pod_now("uid-9", "node1")], Binding.REPLACED),
        ([ApiResponse(409, b"{}"), ApiResponse(404, b"")], Binding.GONE),
        ([ApiResponse(409, b"{}"), ApiResponse(403, b"")], Binding.FORBIDDEN),
        ([ApiResponse(404, b"")], Binding.GONE),
        ([ApiResponse(403, b"")], Binding.FORBIDDEN),
        ([ApiResponse(429, b"", 1.0)], Binding.THROTTLED),
        ([ApiResponse(422, b"")], Binding.FAILED),
        ([LATE, LATE, LATE], Binding.UNKNOWN),
    ],
)
async def test_bindings_are_distinguished(answers: list[ApiResponse | Exception], outcome: Binding) -> None:
    writing, _ = writer(*answers)
    assert (await writing.bind(POD, "node1")).outcome is outcome


async def test_our_events() -> None:
    connection = FaultyConnection(
        Truth(), answers=[ApiResponse(201, b"{}"), ApiResponse(200, b"{}"), ApiResponse(404, b"")]
    )
    announcer = EventWriter(connection, FakeClock(time=1794790178.0))
    name = await announcer.create_event(Announcement("Pod", "ns", "web-1", "uid-1", "RematchWait", "because"))
    await announcer.count_event(name, 2)
    created, counted = connection.calls
    assert created.path == "/api/v1/namespaces/ns/events"
    assert created.body is not None
    assert created.body["metadata"] == {"name": name.name, "namespace": "ns"}
    assert created.body["involvedObject"] == {
        "apiVersion": "v1",
        "kind": "Pod",
        "namespace": "ns",
        "name": "web-1",
        "uid": "uid-1",
    }
    assert created.body["firstTimestamp"] == "2026-11-16T00:49:38Z"
    assert (counted.method, counted.content_type) == ("PATCH", MERGE_PATCH)
    assert counted.path == f"/api/v1/namespaces/ns/events/{name.name}"
    assert counted.body == {"count": 2, "lastTimestamp": "2026-11-16T00:49:38Z"}
    with pytest.raises(NotFound):
        await announcer.count_event(name, 3)


async def test_events_about_objects_without_a_namespace_live_in_default() -> None:
    connection = FaultyConnection(
        Truth(), answers=[ApiResponse(201, b"{}"), ApiResponse(403, status_json(403, "events"))]
    )
    announcer = EventWriter(connection, FakeClock())
    about = Announcement("Node", "", "node1", "u", "Full", "m")
    assert (await announcer.create_event(about)).namespace == "default"
    with pytest.raises(Forbidden, match="POST /api/v1/namespaces/default/events: 403"):
        await announcer.create_event(about)


async def test_results_are_in_order_and_never_too_many_calls_run_at_once() -> None:
    waiting = most = 0

    async def answer(number: int) -> int:
        nonlocal waiting, most
        waiting += 1
        most = max(most, waiting)
        await asyncio.sleep(0.001 * (5 - number))
        waiting -= 1
        return number

    calls = [partial(answer, number) for number in range(5)]

    assert await gather_limited(calls, 2) == [0, 1, 2, 3, 4]
    assert most == 2
    assert await gather_limited([], 2) == []


async def test_a_failure_cancels_the_others() -> None:
    ended: list[str] = []

    async def fail() -> None:
        raise ValueError("no")

    async def wait() -> None:
        try:
            await asyncio.sleep(30)
        finally:
            ended.append("cancelled")

    with pytest.raises(ExceptionGroup):
        await gather_limited([wait, fail], 2)
    assert ended == ["cancelled"]
