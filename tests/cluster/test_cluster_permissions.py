"""Least privilege: without any one permission of the manifests something stops, and it is said which is missing."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Awaitable
from contextlib import suppress
from dataclasses import replace

import msgspec
import pytest

from reactor.clock import SystemClock
from reactor.cluster.api import Connection
from reactor.cluster.connection import open_connection
from reactor.cluster.event_policy import events_authentic
from reactor.cluster.hints import HINTS_PATH, OBJECT_NAME, HintWriter
from reactor.cluster.kinds import OPTIONAL_KINDS, Kind
from reactor.cluster.lease import Lease, LeaseObject
from reactor.cluster.objects import ObjectMeta
from reactor.cluster.records import Owner, Pod
from reactor.cluster.requests import Action, Request, RequestObjects, RequestSpec, RequestStatus
from reactor.cluster.steering_policy import SteeringPolicy
from reactor.cluster.surge_writes import SurgeWriter
from reactor.cluster.writes import Announcement, Binding, ClusterWriter, EventWriter
from reactor.errors import Forbidden, NotFound, RematchError
from reactor.execution.cluster_journal import ClusterJournal, StoredJournal
from reactor.execution.journal import SavedState
from reactor.signals.measurements import MetricsSource
from reactor.state.moves import MoveState
from reactor.web.query import OverviewQuery
from reactor.web.server import live_view
from tests.support.account import ACT, Account, Permission, permissions
from tests.support.clock import eventually
from tests.support.cluster import make_pod
from tests.support.moves import make_move
from tests.support.real_controller import measured, running_as
from tests.support.real_shop import RealShop

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(120)]

JOURNAL = [
    *(("rematch.io", "moves", verb) for verb in ("get", "list", "create", "patch", "delete")),
    *(("rematch.io", "requests", verb) for verb in ("get", "list", "create", "delete")),
    ("rematch.io", "requests/status", "patch"),
    *(("", "configmaps", verb) for verb in ("create", "get", "patch", "delete")),
    *(("coordination.k8s.io", "leases", verb) for verb in ("create", "get", "patch", "delete")),
]
STEERING = [
    *(("rematch.io", "placementhints", verb) for verb in ("create", "get", "patch")),
    *(("admissionregistration.k8s.io", f"mutatingadmissionpolic{ending}", "get") for ending in ("ies", "ybindings")),
    *(("apps", "replicasets", verb) for verb in ("create", "patch", "delete")),
]
SURGING = [
    ("", "pods", "patch"),
    *(("apps", kind, "get") for kind in ("deployments", "replicasets")),
    *(("apps", f"{kind}/scale", "update") for kind in ("deployments", "replicasets")),
    ("", "services", "list"),
    ("discovery.k8s.io", "endpointslices", "list"),
]
"""Only moves by surge need them; without one the move is taken back or skipped."""
TRUSTING = [
    ("admissionregistration.k8s.io", f"validatingadmissionpolic{ending}", "get") for ending in ("ies", "ybindings")
]
MARKING = [("", "pods/status", "patch")]
READING = [
    found
    for found in permissions()
    if found[2] in ("list", "watch") and found[0] != "metrics.k8s.io" and found not in (*JOURNAL, *SURGING)
]
OPTIONAL = [found for found in READING if found[1] in {kind.value for kind in OPTIONAL_KINDS}]
NEEDED = [found for found in READING if found not in OPTIONAL]
MEASURING = [found for found in permissions() if found[0] == "metrics.k8s.io"]
EXECUTING = [("", "pods/eviction", "create"), ("", "pods/binding", "create"), ("", "events", "create")]
SELDOM = [("", "pods", "get"), ("", "events", "patch")]
"""What a controller does only after a conflict, or when it says the same again minutes later."""


def named(permission: Permission) -> str:
    """As the API server spells what is not allowed."""
    group, resource, verb = permission
    return f'cannot {verb} resource "{resource}" in API group "{group}"'


def test_every_permission_of_the_manifests_is_taken_away_once() -> None:
    known = READING + MEASURING + EXECUTING + SELDOM + JOURNAL + STEERING + SURGING + TRUSTING + MARKING
    assert sorted(known) == sorted(permissions())


@pytest.mark.parametrize("permission", OPTIONAL, ids=" ".join)
async def test_without_an_optional_kind_the_controller_is_ready_and_says_what_is_missing(
    account: Account, permission: Permission
) -> None:
    await account.without(*permission)
    async with running_as(account) as live:
        view = live_view(live)
        await eventually(lambda: live.controller.state.synced, 30)
        await eventually(lambda: live.controller.state.mirror.freeze(0.0).unread == {Kind(permission[1])}, 30)
        assert view.ready().ok
        overview = (await view.cluster()).overview(OverviewQuery())
    assert any(named(permission) in problem for problem in overview.problems)


@pytest.mark.parametrize("permission", NEEDED, ids=" ".join)
async def test_what_cannot_be_read_keeps_the_controller_from_being_ready(
    account: Account, permission: Permission
) -> None:
    await account.without(*permission)
    async with running_as(account) as live:
        view = live_view(live)
        await eventually(lambda: any(named(permission) in reason for reason in view.ready().reasons), 30)
        overview = (await view.cluster()).overview(OverviewQuery())
    assert any(named(permission) in problem for problem in overview.problems)
    assert sum("cannot" in problem for problem in overview.problems) == 1


@pytest.mark.parametrize("permission", MEASURING, ids=" ".join)
async def test_without_measurements_nothing_running_is_moved(
    account: Account, shop: RealShop, permission: Permission
) -> None:
    await account.without(*permission)
    async with running_as(account) as live:
        await eventually(lambda: named(permission) in live.metrics.problems.get(MetricsSource.METRICS_API, ""), 20)
        await shop.fail("web")
        await shop.hears("RematchWaits", "noFreshMetrics: ")
    assert shop.where("web") == ["n1"]


@pytest.mark.parametrize("permission", STEERING, ids=" ".join)
async def test_without_a_right_for_hints_steering_says_which_is_missing(
    account: Account, permission: Permission
) -> None:
    await account.without(*permission)
    with suppress(NotFound):  # of an earlier test: it is created only where there is none
        await account.api.delete(f"{HINTS_PATH}/{OBJECT_NAME}", {})
    connection = await open_connection(str(account.kubeconfig))
    try:
        policy = SteeringPolicy(connection, HintWriter(connection, SystemClock()), SystemClock(), "rematch")
        said = await _discovered(policy) + await policy.try_canary()
    finally:
        await connection.close()
    assert named(permission) in said


async def _discovered(policy: SteeringPolicy) -> str:
    try:
        return (await policy.discover()).problem
    except Forbidden as error:
        return str(error)


@pytest.fixture
async def objects(account: Account) -> AsyncIterator[str]:
    """What the calls below change, in a namespace of their own; its name."""
    name = f"rights-{secrets.token_hex(3)}"
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "a", "image": "a"}]}}
    spec = {"replicas": 0, "selector": {"matchLabels": labels}, "template": template}
    await account.api.create("/api/v1/namespaces", {"metadata": {"name": name}})
    for kind in ("deployments", "replicasets"):
        await account.api.create(f"/apis/apps/v1/namespaces/{name}/{kind}", {"metadata": {"name": "web"}, "spec": spec})
    service = {"metadata": {"name": "web"}, "spec": {"selector": labels, "ports": [{"port": 80}]}}
    await account.api.create(f"/api/v1/namespaces/{name}/services", service)
    yield name
    await account.api.delete(f"/api/v1/namespaces/{name}", {})


@pytest.mark.parametrize("permission", [*JOURNAL, *SURGING, *TRUSTING, *MARKING], ids=" ".join)
async def test_a_call_that_is_not_allowed_says_which_right_is_missing(
    account: Account, objects: str, permission: Permission
) -> None:
    """And with all rights every call is allowed: nothing else is refused."""
    await account.without(*permission)
    connection = await open_connection(str(account.kubeconfig))
    try:
        said = [text async for text in _said(connection, account, objects)]
    finally:
        await connection.close()
        await _clean(account)
    assert {
        text for text in said if "cannot " in text and named(permission) not in text and " resource " in text
    } == set()
    assert any(named(permission) in text for text in said), said


async def _said(connection: Connection, account: Account, namespace: str) -> AsyncIterator[str]:
    """What the reactor's own calls answer: of the journal, the Lease, requests, surges, and the looks at policies."""
    clock, pod = SystemClock(), make_pod("web-1", namespace=namespace, labels={"app": "web"})
    surges, requests, lease = (
        SurgeWriter(connection, clock),
        RequestObjects(connection, "rematch"),
        LeaseObject(connection, "rematch", 10.0),
    )
    yield await _outcome(events_authentic(connection, clock.now()))
    yield await ClusterWriter(connection, clock).mark_unschedulable(pod, "Unschedulable", "no room")
    yield (await surges.patch_pod(pod, labels={"a": "b"})).message
    yield await _outcome(surges.services_of(pod))
    for kind in ("Deployment", "ReplicaSet"):
        path = f"/apis/apps/v1/namespaces/{namespace}/{kind.lower()}s/web"
        owner = Owner(kind, "web", (await account.api.get(path))["metadata"]["uid"])
        yield (await surges.scale(owner, namespace, expected=0, wanted=1)).message
    for _ in range(2):
        held = await lease.read() if await _outcome(lease.read()) == "" else None
        yield await _outcome(lease.read())
        yield await _outcome(lease.take(held, "test", 15.0, clock.now()))
    for given in await _leases(account):
        yield await _outcome(lease.give_up(given))
    yield await _outcome(requests.list_all())
    yield await _outcome(requests.find("none"))
    yield await _outcome(requests.create(RequestSpec(Action.PAUSE)))
    asked = Request(ObjectMeta("none", "u", "1"), RequestSpec(Action.PAUSE))
    yield await _outcome(requests.write_status(asked, RequestStatus("done")))
    yield await _outcome(requests.delete(asked))
    async for text in _journal(connection, account, pod):
        yield text


async def _journal(connection: Connection, account: Account, pod: Pod) -> AsyncIterator[str]:
    journal, move = ClusterJournal(connection, "rematch", "test"), make_move(pod, "n2")
    yield await _outcome(journal.load())
    yield await _outcome(journal.load())
    yield await _outcome(journal.write(move))
    yield await _outcome(journal.write(replace(move, state=MoveState.EVICTED)))
    other = ClusterJournal(connection, "rematch", "other")
    yield await _outcome(other.load())
    yield await _outcome(journal.write(move))
    yield await _outcome(other.remove(move.id))
    yield await _outcome(other.write_state(SavedState({"brake": "{}"})))
    yield await _outcome(StoredJournal(connection, "rematch").delete_state())


async def _outcome(call: Awaitable[object]) -> str:
    try:
        await call
    except RematchError as error:
        return str(error)
    return ""


async def _leases(account: Account) -> list[Lease]:
    found = await account.api.get("/apis/coordination.k8s.io/v1/namespaces/rematch/leases")
    return [msgspec.convert(item, Lease) for item in found["items"] if item["metadata"]["name"] == "rematch"]


async def _clean(account: Account) -> None:
    """What is left where deletion was the right that is missing."""
    for path in (
        "/apis/rematch.io/v1alpha1/namespaces/rematch/moves",
        "/apis/rematch.io/v1alpha1/namespaces/rematch/requests",
    ):
        for item in (await account.api.get(path))["items"]:
            await account.api.delete(f"{path}/{item['metadata']['name']}", {})
    for path in (
        "/api/v1/namespaces/rematch/configmaps/rematch-state",
        "/apis/coordination.k8s.io/v1/namespaces/rematch/leases/rematch",
    ):
        with suppress(NotFound):
            await account.api.delete(path, {})


async def test_without_eviction_the_move_fails_and_says_so(account: Account, shop: RealShop) -> None:
    await account.without("", "pods/eviction", "create")
    await account.settings(ACT + "execution: {strategies: [evict], evictSingleReplicas: true}\n")
    async with running_as(account) as live:
        await eventually(lambda: measured(live), 20)
        await shop.fail("web")
        await shop.hears("MoveFailed", named(("", "pods/eviction", "create")))
    assert shop.where("web") == ["n1"]


async def test_without_binding_the_pod_stays_pending_and_an_event_says_so(account: Account, shop: RealShop) -> None:
    await account.without("", "pods/binding", "create")
    async with running_as(account) as live:
        await eventually(lambda: measured(live), 20)
        await shop.deploy("late")
        await shop.hears("FailedBinding", named(("", "pods/binding", "create")))
    assert shop.where("late") == [""]


async def test_without_events_the_move_is_made_in_silence_and_the_problem_is_shown(
    account: Account, shop: RealShop
) -> None:
    await account.without("", "events", "create")
    async with running_as(account) as live:
        await eventually(lambda: measured(live), 20)
        await shop.fail("web")
        await eventually(lambda: shop.where("web") == ["n2"], 20)
        await eventually(lambda: named(("", "events", "create")) in live.controller.events.problem, 10)
        problems = (await live_view(live).cluster()).overview(OverviewQuery()).problems
    assert any(named(("", "events", "create")) in problem for problem in problems)
    assert await shop.said() == []


async def test_a_conflict_cannot_be_settled_without_reading_the_pod(account: Account, shop: RealShop) -> None:
    await account.without("", "pods", "get")
    async with running_as(account) as live:
        await eventually(lambda: live.controller.state.synced, 20)
        pod = live.controller.state.mirror.pod_named(shop.namespace, shop.pods("web")[0]["metadata"]["name"])
        assert pod is not None
        answer = await ClusterWriter(live.connection, live.controller.clock).bind(pod, "n2")
    assert answer.outcome is Binding.FORBIDDEN
    assert named(("", "pods", "get")) in answer.message


async def test_a_repeated_event_cannot_be_counted_without_patch(account: Account, shop: RealShop) -> None:
    await account.without("", "events", "patch")
    async with running_as(account) as live:
        announcer = EventWriter(live.connection, live.controller.clock)
        event = await announcer.create_event(Announcement("Pod", shop.namespace, "p", "u", "Unhappy", "twice"))
        with pytest.raises(Forbidden) as refused:
            await announcer.count_event(event, 2)
    assert named(("", "events", "patch")) in str(refused.value)
