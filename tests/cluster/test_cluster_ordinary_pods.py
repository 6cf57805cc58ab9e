"""End to end on a real control plane: ordinary Deployments, with unchanged manifests and kube-scheduler."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from loadtests.controlplane import ControlPlane, serve_metrics
from tests.support.account import ACT, Account
from tests.support.clock import eventually
from tests.support.real_controller import measured, running_as
from tests.support.real_shop import RealShop, open_real_shop
from tests.support.real_steering import as_user, remove_policy

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(120)]

EVICT = f"{ACT}\nexecution: {{strategies: [evict], evictSingleReplicas: true}}"


@pytest.fixture
async def ordinary_shop(real_plane: ControlPlane) -> AsyncIterator[RealShop]:
    """web and db crowd n1, n2 is idle; kube-scheduler has placed them while n2 was cordoned."""
    async with open_real_shop(real_plane) as shop, serve_metrics(real_plane, shop):
        await cordon(shop, "n2", unschedulable=True)
        for app in ("web", "db"):
            await shop.deploy(app, scheduler="default-scheduler")
            await eventually(lambda app=app: shop.ready(app), 20)  # type: ignore[misc]
        await cordon(shop, "n2", unschedulable=False)
        yield shop


async def cordon(shop: RealShop, node: str, *, unschedulable: bool) -> None:
    await shop.api.patch(f"/api/v1/nodes/{node}", {"spec": {"unschedulable": unschedulable}})


async def settings(account: Account, namespace: str) -> None:
    await account.settings(f"{EVICT}\nmanaged: {{anySchedulerNamespaces: [{namespace}]}}")


async def test_without_the_opt_in_an_ordinary_pod_is_left_alone(ordinary_shop: RealShop, account: Account) -> None:
    await account.settings(EVICT)
    async with running_as(account) as live:
        await eventually(lambda: measured(live), 20)
        await ordinary_shop.fail("web")
        await ordinary_shop.hears("RematchWaits", "managed.anySchedulerNamespaces")
    assert ordinary_shop.where("web") == ["n1"]


async def test_without_the_policy_the_reason_says_what_to_install(ordinary_shop: RealShop, account: Account) -> None:
    shop = ordinary_shop
    await settings(account, shop.namespace)
    async with as_user(account.plane, shop.namespace) as admin:
        await remove_policy(admin)
    async with running_as(account) as live:
        await eventually(lambda: measured(live), 20)
        await shop.fail("web")
        await shop.hears("RematchWaits", "kubectl apply -f deploy/chart/files/crds/placementhints.yaml")
    assert shop.where("web") == ["n1"]
