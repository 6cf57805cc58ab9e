"""Who leads, and when nobody does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from loadtests.embedded.resources import LEASES
from reactor.cluster.api import ApiRequest
from reactor.cluster.fence import FencedConnection
from reactor.cluster.lease import LeaseObject
from reactor.cluster.rights import INSTALL
from reactor.errors import InputError, NotLeader
from reactor.execution.leader import LeaderElection, LeaseTiming
from tests.support.api import InProcessApi
from tests.support.clock import VirtualClock

EVICT = ApiRequest("POST", "/api/v1/namespaces/shop/pods/web/eviction", body={})
BIND = ApiRequest("POST", "/api/v1/namespaces/shop/pods/web/binding", body={})


class Candidate:
    """One process: its own way to the API, and how often it began to lead and stopped."""

    def __init__(self, api: InProcessApi, clock: VirtualClock, name: str) -> None:
        self.api = api
        self.election = LeaderElection(api, "rematch", clock, name)
        self.began = self.stopped = 0

    async def lead(self) -> None:
        self.began += 1
        try:
            await asyncio.Event().wait()
        finally:
            self.stopped += 1


@asynccontextmanager
async def running(*candidates: Candidate) -> AsyncIterator[None]:
    async with AsyncExitStack() as stack:
        for each in candidates:
            task = asyncio.create_task(each.election.run(each.lead))
            stack.push_async_callback(_end, task)
        yield


async def _end(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def make(clock: VirtualClock) -> Callable[[str], Candidate]:
    api = InProcessApi(clock)
    return lambda name: Candidate(api.another(), clock, name)


async def test_one_of_two_leads(clock: VirtualClock, make: Callable[[str], Candidate]) -> None:
    a, b = make("a"), make("b")
    async with running(a, b):
        await clock.advance(120)
        assert [a.election.leads, b.election.leads] == [True, False]
        assert (a.began, a.stopped, b.began) == (1, 0, 0)
        assert b.election.problem == "a leads"


async def test_a_dead_leader_is_followed_within_the_lease_and_5_s(
    clock: VirtualClock, make: Callable[[str], Candidate]
) -> None:
    a, b = make("a"), make("b")
    async with running(a):
        await clock.advance(7)
    async with running(b):
        died = clock.monotonic()
        while not b.election.leads:
            await clock.advance(0.1)
            assert clock.monotonic() - died < 20
    assert clock.monotonic() - died >= 9


async def test_the_lease_never_says_less_than_its_holder_counts_on(clock: VirtualClock) -> None:
    """The API has whole seconds."""
    api = InProcessApi(clock)
    lease = await LeaseObject(api, "rematch", 5.0).take(None, "a", 10.4, clock.now())
    assert lease.spec.lease_duration_seconds == 11


async def test_a_released_lease_is_free_at_once(clock: VirtualClock, make: Callable[[str], Candidate]) -> None:
    a, b = make("a"), make("b")
    async with running(a):
        await clock.advance(5)
    await a.election.release()
    assert not a.election.leads
    async with running(b):
        await clock.advance(2)
        assert b.election.leads


async def test_a_lease_whose_renewal_was_cut_off_is_released(
    clock: VirtualClock, make: Callable[[str], Candidate]
) -> None:
    a = make("a")
    async with running(a):
        await clock.advance(5)
    stored = a.api.cluster.api.get(LEASES, "rematch", "rematch")
    a.api.cluster.api.update(LEASES, {**stored, "spec": stored["spec"] | {"renewTime": "2026-01-01T00:00:00.000000Z"}})
    await a.election.release()
    assert a.api.cluster.store.find(LEASES, "rematch", "rematch") is None


async def test_a_leader_without_api_server_stops_before_another_can_start(
    clock: VirtualClock, make: Callable[[str], Candidate]
) -> None:
    a, b = make("a"), make("b")
    async with running(a, b):
        await clock.advance(30)
        cut = clock.monotonic()
        a.api.cut = True
        while not b.election.leads:
            await clock.advance(0.1)
            assert not (a.election.leads and b.election.leads)
            if clock.monotonic() - cut > 10.2:
                assert not a.election.leads
                assert a.stopped == 1
        assert clock.monotonic() - cut <= 20
        a.api.cut = False
        await clock.advance(30)
        assert [a.election.leads, b.election.leads] == [False, True]
        b.api.cut = True
        await clock.advance(25)
        assert a.election.leads
        assert a.began == 2


async def test_a_process_that_stood_still_writes_nothing_when_it_wakes(
    clock: VirtualClock, make: Callable[[str], Candidate]
) -> None:
    a, b = make("a"), make("b")
    fenced = FencedConnection(a.api, a.election.seconds_left)
    async with running(a):
        await clock.advance(1)
        assert (await fenced.send(EVICT)).code == 404
    clock.set(clock.monotonic() + 11)  # SIGSTOP: its tasks do not run, the boot time goes on
    with pytest.raises(NotLeader, match="does not hold the Lease"):
        await fenced.send(EVICT)
    assert (await fenced.send(ApiRequest("GET", "/api/v1/nodes"))).code == 200
    async with running(b):
        await clock.advance(30)
        assert b.election.leads


async def test_a_write_ends_with_the_lease(clock: VirtualClock, make: Callable[[str], Candidate]) -> None:
    a = make("a")
    fenced = FencedConnection(a.api, a.election.seconds_left)
    async with running(a):
        await clock.advance(1)
    clock.set(clock.monotonic() + 7)
    await fenced.send(EVICT)
    assert a.api.writes[-1].deadline <= 3.1


async def test_events_are_written_late_rather_than_never(clock: VirtualClock, make: Callable[[str], Candidate]) -> None:
    a = make("a")
    fenced = FencedConnection(a.api, a.election.seconds_left)
    event = {"metadata": {"name": "e"}, "involvedObject": {"kind": "Pod", "name": "p"}}
    assert (await fenced.send(ApiRequest("POST", "/api/v1/namespaces/default/events", body=event))).code == 200
    with pytest.raises(NotLeader):
        await fenced.send(ApiRequest("POST", "/api/v1/namespaces/events/pods/x/eviction", body={}))


async def test_without_the_right_to_the_lease_pods_are_bound_and_nothing_is_evicted(
    clock: VirtualClock, make: Callable[[str], Candidate]
) -> None:
    a = make("a")
    a.api.refuse = lambda request: "leases" in request.path
    fenced = FencedConnection(a.api, a.election.seconds_left)
    async with running(a):
        await clock.advance(5)
        assert (a.election.leads, a.election.may_bind) == (False, True)
        assert INSTALL in a.election.problem
        assert (await fenced.send(BIND)).code == 404
        with pytest.raises(NotLeader):
            await fenced.send(EVICT)
        a.api.refuse = lambda _request: False
        await clock.advance(5)
        assert a.election.leads


async def test_a_lost_answer_does_not_lose_the_lease(clock: VirtualClock, make: Callable[[str], Candidate]) -> None:
    a = make("a")
    async with running(a):
        await clock.advance(5)
        for _ in range(10):
            a.api.cut = True
            await clock.advance(3)
            a.api.cut = False
            await clock.advance(5)
        assert (a.began, a.stopped) == (1, 0)


def test_timings_that_cannot_work_are_refused() -> None:
    with pytest.raises(InputError, match="--lease-duration 5 must be longer than --lease-renew-deadline 10"):
        LeaseTiming(duration=5)
