"""The proxy on the embedded API server: each fault does to a request what it says, and to no other."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest

from loadtests.chaos import proxy as proxy_module
from loadtests.chaos.faults import Fault, FaultKind
from loadtests.chaos.proxy import ArmedFaults, FaultProxy
from loadtests.chaos.requests import Step, step_of
from loadtests.embedded import EmbeddedCluster
from loadtests.embedded.resources import CONFIGMAPS
from reactor.clock import SystemClock

MAPS = "/api/v1/namespaces/default/configmaps"
CLOCK = SystemClock()


class Behind:
    """A client of the embedded server that goes through the proxy."""

    def __init__(self, cluster: EmbeddedCluster, proxy: FaultProxy, faults: ArmedFaults) -> None:
        self.cluster, self.proxy, self.faults = cluster, proxy, faults
        self.killed = 0
        proxy.kill = self._kill

    def _kill(self) -> None:
        self.killed += 1

    def arm(self, kind: FaultKind, *steps: Step) -> None:
        self.faults.arm(Fault(kind, 0.0, 0, frozenset(steps or {Step.STATE})))

    async def create(self, session: aiohttp.ClientSession, name: str) -> int:
        async with session.post(self.proxy.url + MAPS, json={"metadata": {"name": name}}) as answer:
            await answer.read()
            return answer.status

    def exists(self, name: str) -> bool:
        return self.cluster.store.find(CONFIGMAPS, "default", name) is not None


@asynccontextmanager
async def behind_proxy() -> AsyncIterator[tuple[Behind, aiohttp.ClientSession]]:
    faults = ArmedFaults(CLOCK)
    async with EmbeddedCluster() as cluster:
        proxy = FaultProxy(CLOCK, cluster.url, None, faults)
        # aiohttp repeats a GET whose connection broke: each request gets a connection of its own here.
        connector = aiohttp.TCPConnector(force_close=True)
        async with proxy.serving(), aiohttp.ClientSession(connector=connector) as session:
            yield Behind(cluster, proxy, faults), session


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        (FaultKind.CONFLICT, 409),
        (FaultKind.THROTTLED, 429),
        (FaultKind.ERROR, 500),
        (FaultKind.UNAVAILABLE, 503),
    ],
)
async def test_a_refusal_is_answered_once_and_never_passed_on(kind: FaultKind, status: int) -> None:
    async with behind_proxy() as (behind, session):
        behind.arm(kind)
        assert await behind.create(session, "first") == status
        assert not behind.exists("first")
        assert await behind.create(session, "first") == 201
        assert [hit.fault.kind for hit in behind.faults.hits] == [kind]


async def test_retry_after_is_stated_only_where_asked_for() -> None:
    async with behind_proxy() as (behind, session):
        behind.arm(FaultKind.THROTTLED_FOR)
        async with session.post(behind.proxy.url + MAPS, json={}) as answer:
            assert (answer.status, answer.headers["Retry-After"]) == (429, "1")


@pytest.mark.parametrize(
    ("kind", "written", "killed"),
    [
        (FaultKind.LOST_REQUEST, False, 0),
        (FaultKind.LOST_ANSWER, True, 0),
        (FaultKind.KILL_BEFORE, False, 1),
        (FaultKind.KILL_PASSED, True, 1),
    ],
)
async def test_a_lost_request_was_not_written_and_a_lost_answer_was(
    kind: FaultKind, written: bool, killed: int
) -> None:
    async with behind_proxy() as (behind, session):
        behind.arm(kind)
        with pytest.raises(aiohttp.ClientError):
            await behind.create(session, "first")
        assert (behind.exists("first"), behind.killed) == (written, killed)


async def test_the_answer_arrives_before_the_kill() -> None:
    async with behind_proxy() as (behind, session):
        behind.arm(FaultKind.KILL_ANSWERED)
        assert await behind.create(session, "first") == 201
        assert behind.killed == 1


async def test_a_late_request_arrives_although_its_sender_has_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proxy_module, "LATE_SECONDS", 0.2)
    async with behind_proxy() as (behind, session):
        behind.arm(FaultKind.LATE_REQUEST)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await behind.create(session, "first")
        assert not behind.exists("first")
        async with asyncio.timeout(5):
            while not behind.exists("first"):
                await asyncio.sleep(0.01)


async def test_nothing_passes_a_partition_until_it_is_over() -> None:
    async with behind_proxy() as (behind, session):
        behind.proxy.cut_off()
        creating = asyncio.create_task(behind.create(session, "first"))
        await asyncio.sleep(0.1)
        assert not creating.done()
        assert not behind.exists("first")
        behind.proxy.connect()
        assert await creating == 201


async def test_a_watch_is_streamed_and_cut_in_the_middle_of_an_object() -> None:
    async with behind_proxy() as (behind, session):
        url = f"{behind.proxy.url}{MAPS}?watch=true"
        async with session.get(url) as watch:
            behind.cluster.api.create(CONFIGMAPS, _config_map("first"))
            whole = await watch.content.readline()
            assert b'"first"' in whole
            behind.arm(FaultKind.CUT_WATCH, Step.WATCH)
            behind.cluster.api.create(CONFIGMAPS, _config_map("second"))
            with pytest.raises(aiohttp.ClientError):
                await watch.content.read()
        assert [hit.step for hit in behind.faults.hits] == [Step.WATCH]


async def test_a_watch_is_told_that_its_version_is_too_old() -> None:
    async with behind_proxy() as (behind, session):
        behind.arm(FaultKind.EXPIRED, Step.WATCH)
        async with session.get(f"{behind.proxy.url}{MAPS}?watch=true") as watch:
            behind.cluster.api.create(CONFIGMAPS, _config_map("first"))
            assert b'"code":410' in await watch.content.readline()


async def test_requests_of_other_steps_are_left_alone() -> None:
    async with behind_proxy() as (behind, session):
        behind.arm(FaultKind.ERROR, Step.EVICT)
        assert await behind.create(session, "first") == 201
        async with session.get(behind.proxy.url + MAPS) as answer:
            assert answer.status == 200
        assert behind.faults.waiting
        assert behind.proxy.traffic.requests == {Step.STATE: 1, Step.LIST: 1}


@pytest.mark.parametrize(
    ("method", "path", "step"),
    [
        ("POST", "/api/v1/namespaces/shop/pods/web-1/eviction", Step.EVICT),
        ("POST", "/api/v1/namespaces/shop/pods/web-1/binding", Step.BIND),
        ("DELETE", "/api/v1/namespaces/shop/pods/web-1", Step.POD_DELETE),
        ("PATCH", "/api/v1/namespaces/shop/pods/web-1", Step.POD),
        ("PATCH", "/api/v1/namespaces/shop/pods/web-1/status", Step.POD),
        ("PATCH", "/apis/apps/v1/namespaces/shop/deployments/web/scale", Step.OWNER),
        ("PUT", "/apis/coordination.k8s.io/v1/namespaces/rematch/leases/rematch", Step.LEASE),
        ("POST", "/apis/rematch.io/v1alpha1/namespaces/rematch/moves", Step.JOURNAL),
        ("PATCH", "/apis/rematch.io/v1alpha1/placementhints/rematch", Step.HINT),
        ("POST", "/api/v1/namespaces/shop/events", Step.EVENT),
        ("GET", "/api/v1/pods", Step.LIST),
        ("GET", "/api/v1/namespaces/shop/pods", Step.LIST),
        ("GET", "/api/v1/namespaces", Step.LIST),
        ("GET", "/api/v1/namespaces/shop/pods/web-1", Step.READ),
        ("POST", "/apis/authentication.k8s.io/v1/tokenreviews", Step.OTHER_WRITE),
    ],
)
def test_what_a_request_is_for(method: str, path: str, step: Step) -> None:
    assert step_of(method, path) is step


def _config_map(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "default"}}
