"""End to end on a real control plane, as the service account of the manifests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pytest

from loadtests.controlplane import ControlPlane, serve_metrics
from loadtests.kubelet.kubelet import LabKubelet
from loadtests.kubelet.usage import ProbeKind
from loadtests.metrics.rates import LabMetrics, UsageSampler
from loadtests.workloads.api import LabApi
from loadtests.workloads.load_generator import AppLoad, LoadGenerator, LoadPlan, RateStep
from loadtests.workloads.placement import NodeSpec
from loadtests.workloads.samples import LoadLog
from loadtests.workloads.targets import WatchedTargets
from reactor.clock import SystemClock
from reactor.errors import ClusterError
from reactor.settings.model import Mode
from tests.support.account import ACT, Account
from tests.support.clock import eventually
from tests.support.real_controller import measured, running_as
from tests.support.real_shop import RealShop, open_real_shop

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(120)]
CLOCK = SystemClock()


@asynccontextmanager
async def in_background(*works: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    tasks = [asyncio.create_task(work) for work in works]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _accepted(api: LabApi) -> bool:
    try:
        await api.get("/api/v1/nodes")
    except ClusterError as error:
        return error.status != 401
    return True


def _alive(kubelet: LabKubelet) -> int:
    """Liveness probes that succeeded on its node."""
    counts = kubelet.probe_counts()
    return sum(found.count for found in counts if found.kind is ProbeKind.LIVENESS and found.successful)


async def test_load_makes_probes_fail_and_the_pod_gets_a_node_where_they_succeed(
    real_plane: ControlPlane, account: Account
) -> None:
    weak, strong = NodeSpec("weak", 0.6, 4 * 2**30), NodeSpec("strong", 4, 8 * 2**30)
    async with open_real_shop(real_plane, weak, strong) as shop:
        sampler = UsageSampler(shop.kubelets, CLOCK, step=0.2)
        targets = WatchedTargets(shop.api, shop.namespace)
        async with serve_metrics(real_plane, LabMetrics(sampler)), in_background(sampler.run(), targets.run()):
            await shop.open("web", "weak")
            before = shop.pods("web")[0]["metadata"]["uid"]
            async with running_as(account) as live:
                await eventually(lambda: measured(live), 20)
                load = LoadPlan((AppLoad("web", (RateStep(0, 45),)),), seed=1, duration=90)
                async with in_background(LoadGenerator(load, targets, LoadLog(CLOCK), CLOCK).run()):
                    await eventually(lambda: shop.where("web") == ["strong"] and shop.ready("web"), 60)
                    await eventually(lambda: _alive(shop.kubelets[1]) >= 5, 20)
                (replacement,) = shop.pods("web")
                snapshot = live.controller.state.freeze(live.controller.executor.active_moves())
                seen = snapshot.cluster.pods[replacement["metadata"]["uid"]]
                assert seen.node == "strong"
                assert seen not in snapshot.unhappy_pods()
                await live.controller.store.flush()
                (move,) = await live.controller.store.moves()
            events = (await shop.api.get(f"/api/v1/namespaces/{shop.namespace}/events"))["items"]
    failed = [event for event in events if event["message"].startswith("Liveness probe failed")]
    assert before in {event["involvedObject"]["uid"] for event in failed}
    assert (move.pod_uid, move.from_node, move.to_node, move.outcome) == (before, "weak", "strong", "done")
    assert move.replacement_uid == replacement["metadata"]["uid"]


async def test_a_failing_pod_is_moved_and_everything_is_on_record(shop: RealShop, account: Account) -> None:
    async with running_as(account) as live:
        await eventually(lambda: measured(live), 20)
        await shop.fail("web")
        await eventually(lambda: shop.where("web") == ["n2"] and shop.ready("web"), 20)
        await eventually(lambda: not live.controller.executor.busy, 20)
        await shop.hears("Moved")
    assert {"Unhappy", "Moving", "Scheduled", "Moved"} <= {reason for reason, _ in await shop.said()}
    assert shop.where("db") == ["n1"]


async def test_kube_scheduler_places_everything_else_beside_us(shop: RealShop, account: Account) -> None:
    async with running_as(account) as live:
        await eventually(lambda: measured(live), 20)
        await shop.deploy("other", scheduler="default-scheduler", replicas=3)
        await eventually(lambda: all(shop.where("other")) and shop.ready("other"), 20)
        theirs = {pod["metadata"]["uid"] for pod in shop.pods("other")}
        await shop.deploy("ours", replicas=2)
        await eventually(lambda: all(shop.where("ours")) and shop.ready("ours"), 20)
        await shop.fail("web")
        await shop.fail("other")
        await eventually(lambda: shop.where("web") == ["n2"] and shop.ready("web"), 20)
    assert {pod["metadata"]["uid"] for pod in shop.pods("other")} == theirs
    events = (await shop.api.get(f"/api/v1/namespaces/{shop.namespace}/events"))["items"]
    scheduled = [event for event in events if event["reason"] == "Scheduled"]
    by = {event["involvedObject"]["name"].partition("-")[0]: event["reportingComponent"] for event in scheduled}
    assert (by["other"], by["ours"]) == ("default-scheduler", "rematch")


async def test_a_budget_that_allows_nothing_ever_is_respected(shop: RealShop, account: Account) -> None:
    """One that only allows nothing now is surged past."""
    spec = {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "web"}}}
    path = f"/apis/policy/v1/namespaces/{shop.namespace}/poddisruptionbudgets"
    await shop.api.create(path, {"metadata": {"name": "web"}, "spec": spec})
    async with running_as(account) as live:
        await eventually(lambda: measured(live), 20)
        await shop.fail("web")
        await shop.hears("RematchWaits", "disruptionBudget: ")
    assert shop.where("web") == ["n1"]


async def test_settings_of_the_config_map_are_followed(shop: RealShop, account: Account) -> None:
    await account.settings(ACT.replace("mode: act", "mode: observe"))
    async with running_as(account) as live:
        await eventually(lambda: measured(live), 20)
        await shop.fail("web")
        await shop.hears("Unhappy")
        assert shop.where("web") == ["n1"]
        await account.settings(ACT)
        await eventually(lambda: live.settings.get().mode is Mode.ACT, 10)
        await eventually(lambda: shop.where("web") == ["n2"] and shop.ready("web"), 20)


async def test_the_token_is_replaced_and_the_old_one_dies_without_a_restart(shop: RealShop, account: Account) -> None:
    old = account.token_file.read_text()
    async with running_as(account) as live:
        await eventually(lambda: measured(live), 20)
        await account.issue("second")
        await account.revoke("first")
        stale = account.plane.client(CLOCK, token=old)
        async with asyncio.timeout(60):
            while await _accepted(stale):
                await asyncio.sleep(0.2)
        await stale.close()
        await shop.fail("web")
        await eventually(lambda: shop.where("web") == ["n2"] and shop.ready("web"), 20)
        assert not any(live.metrics.problems.values())
        assert all(not state.denied for state in live.watch.states)
