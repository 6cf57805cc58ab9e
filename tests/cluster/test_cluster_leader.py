"""Two controllers on a real control plane: one leads, the other follows when it dies; requests reach the leader."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from loadtests.controlplane import install_crds
from reactor.app import LiveController, Options, open_controller
from reactor.cluster.connection import open_connection
from reactor.cluster.kinds import ObjectName
from reactor.cluster.requests import Action, Request, RequestedMove, RequestObjects, RequestSpec
from reactor.cluster.rights import INSTALL
from reactor.errors import NotFound
from reactor.execution.leader import LeaseTiming
from reactor.web.query import OverviewQuery
from reactor.web.server import live_view
from tests.support.account import Account
from tests.support.clock import eventually
from tests.support.real_controller import measured
from tests.support.real_shop import RealShop

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(120)]

SHORT = LeaseTiming(duration=3.0, renew_deadline=2.0, retry=0.5)
HOME = ObjectName("rematch", "rematch")


@asynccontextmanager
async def replica(account: Account, name: str) -> AsyncIterator[tuple[LiveController, asyncio.Task[None]]]:
    store = account.token_file.with_name(f"{name}.db")
    async with open_controller(Options(store, str(account.kubeconfig), config_map=HOME, lease=SHORT)) as live:
        job = asyncio.create_task(live.run())
        try:
            yield live, job
        finally:
            job.cancel()
            await asyncio.gather(job, return_exceptions=True)


def acts(live: LiveController) -> bool:
    return not live.controller.acting.hindrance


async def die(live: LiveController, job: asyncio.Task[None], monkeypatch: pytest.MonkeyPatch) -> None:
    """As kill -9: the Lease is not released."""

    async def keep() -> None:
        pass

    assert live.election is not None
    monkeypatch.setattr(live.election, "release", keep)
    job.cancel()
    await asyncio.gather(job, return_exceptions=True)


async def test_the_second_controller_goes_on_when_the_first_one_dies(
    account: Account, shop: RealShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with AsyncExitStack() as stack:
        first, first_job = await stack.enter_async_context(replica(account, "first"))
        await eventually(lambda: acts(first) and measured(first), 30)
        second, _ = await stack.enter_async_context(replica(account, "second"))
        await eventually(lambda: measured(second), 30)
        assert (acts(first), acts(second)) == (True, False)
        assert second.controller.acting.hindrance.endswith("leads")

        died = time.monotonic()
        await die(first, first_job, monkeypatch)
        await eventually(lambda: acts(second), 20)
        assert time.monotonic() - died <= SHORT.duration + 5
        await shop.fail("web")
        await eventually(lambda: shop.where("web") == ["n2"] and shop.ready("web"), 30)
        await second.controller.store.flush()
        assert len(await second.controller.store.moves()) == 1
        assert await first.controller.store.moves() == []


async def _asked(account: Account, spec: RequestSpec) -> Request:
    connection = await open_connection(str(account.plane.kubeconfig))
    try:
        objects = RequestObjects(connection, "rematch")
        name = (await objects.create(spec)).metadata.name
        async with asyncio.timeout(60):
            while True:
                found = await objects.find(name)
                assert found is not None
                if found.ended:
                    return found
                await asyncio.sleep(0.1)
    finally:
        await connection.close()


async def test_the_leader_pauses_moves_and_resumes_on_request(account: Account, shop: RealShop) -> None:
    async with replica(account, "first") as (live, _):
        await eventually(lambda: acts(live) and measured(live), 30)
        pod = f"{shop.namespace}/{shop.pods('web')[0]['metadata']['name']}"

        paused = await _asked(account, RequestSpec(Action.PAUSE, "release day", "1h"))
        assert (paused.status.state, "release day" in live.controller.acting.hindrance) == ("done", True)
        refused = await _asked(account, RequestSpec(Action.MOVE, moves=(RequestedMove(pod, "n2"),)))
        assert (refused.status.state, "paused" in refused.status.message) == ("failed", True)
        await shop.deploy("late")
        await eventually(lambda: all(shop.where("late")), 20)

        assert (await _asked(account, RequestSpec(Action.RESUME))).status.state == "done"
        moved = await _asked(account, RequestSpec(Action.MOVE, moves=(RequestedMove(pod, "n2"),)))
        assert (moved.status.state, moved.status.message) == ("done", "1 of 1 pods moved")
        assert shop.where("web") == ["n2"]

        gone = await _asked(account, RequestSpec(Action.MOVE, moves=(RequestedMove("shop/none", "n2"),)))
        assert (gone.status.state, gone.status.message) == ("failed", "there is no pod shop/none")


async def _binds_but_evicts_nothing(live: LiveController, shop: RealShop, problem: str) -> None:
    await eventually(lambda: live.controller.state.synced, 30)
    await eventually(lambda: problem in live.controller.acting.hindrance, 30)
    await shop.deploy("late")
    await eventually(lambda: all(shop.where("late")), 20)
    await eventually(lambda: measured(live), 30)
    before = shop.pods("web")[0]["metadata"]["uid"]
    await shop.fail("web")
    await asyncio.sleep(3)
    assert shop.pods("web")[0]["metadata"]["uid"] == before
    overview = (await live_view(live).cluster()).overview(OverviewQuery())
    assert problem in (overview.halted or "")


async def test_without_the_definition_of_moves_pods_are_bound_and_nothing_is_evicted(
    account: Account, shop: RealShop
) -> None:
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/moves.rematch.io"
    await account.api.delete(path, {})
    try:
        async with asyncio.timeout(30):
            while await _there(account, path):
                await asyncio.sleep(0.05)
        async with replica(account, "first") as (live, _):
            await _binds_but_evicts_nothing(live, shop, f"mend it with: {INSTALL}")
            await install_crds(account.api)
            await eventually(lambda: acts(live), 40)
            await shop.fail("web")
            await eventually(lambda: shop.where("web") == ["n2"] and shop.ready("web"), 40)
    finally:
        await install_crds(account.api)


async def _there(account: Account, path: str) -> bool:
    try:
        await account.api.get(path)
    except NotFound:
        return False
    return True


@pytest.mark.parametrize(
    "right", [("rematch.io", "moves", "list"), ("", "configmaps", "get"), ("coordination.k8s.io", "leases", "get")]
)
async def test_without_a_right_to_the_journal_pods_are_bound_and_nothing_is_evicted(
    account: Account, shop: RealShop, right: tuple[str, str, str]
) -> None:
    await account.without(*right)
    async with replica(account, "first") as (live, _):
        group, resource, verb = right
        problem = f'cannot {verb} resource "{resource}" in API group "{group}"'
        await _binds_but_evicts_nothing(live, shop, problem)
