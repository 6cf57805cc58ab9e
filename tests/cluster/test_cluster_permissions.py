"""Least privilege: without any one permission of the manifests something stops, and it is said which is missing."""

from __future__ import annotations

import pytest

from reactor.clock import SystemClock
from reactor.cluster.connection import open_connection
from reactor.cluster.hints import HintWriter
from reactor.cluster.kinds import OPTIONAL_KINDS, Kind
from reactor.cluster.steering_policy import SteeringPolicy
from reactor.cluster.writes import Announcement, Binding, ClusterWriter, EventWriter
from reactor.errors import Forbidden
from reactor.signals.measurements import MetricsSource
from reactor.web.query import OverviewQuery
from reactor.web.server import live_view
from tests.support.account import Account, Permission, permissions
from tests.support.clock import eventually
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
    known = READING + MEASURING + EXECUTING + SELDOM + JOURNAL + STEERING + SURGING
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


async def test_without_eviction_the_move_fails_and_says_so(account: Account, shop: RealShop) -> None:
    await account.without("", "pods/eviction", "create")
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
