"""End to end on a real control plane: ordinary Deployments, with unchanged manifests and kube-scheduler."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from loadtests.controlplane import ControlPlane, serve_metrics
from reactor.cluster.hints import MOVE_LABEL
from tests.support.account import ACT, Account
from tests.support.clock import eventually
from tests.support.real_controller import measured, running_as
from tests.support.real_shop import RealShop, open_real_shop
from tests.support.real_steering import as_user, install_policy, remove_policy

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(120)]

EVICT = "strategies: [evict], evictSingleReplicas: true"


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


async def settings(account: Account, namespaces: str, execution: str = EVICT) -> None:
    """Without a pause after the move of the test before, which the state object remembers."""
    managed = f"{{anySchedulerNamespaces: [{namespaces}]}}"
    act = ACT.replace("cooldown: 300s", "cooldown: 300s, settle: 0s")
    await account.settings(f"{act}\nmanaged: {managed}\nexecution: {{{execution}}}")


@pytest.mark.parametrize("execution", [EVICT, "strategies: [scaleSurge]", "strategies: [releaseSurge]"])
async def test_an_ordinary_pod_is_moved_to_the_planned_node(
    ordinary_shop: RealShop, account: Account, execution: str
) -> None:
    shop = ordinary_shop
    await settings(account, shop.namespace, execution)
    async with as_user(account.plane, shop.namespace) as admin:
        await install_policy(admin)
    async with running_as(account) as live:
        await eventually(lambda: measured(live) and live.controller.steering.status.tried, 40)
        assert live.controller.steering.status.policy_works, live.controller.steering.status.problem
        await shop.fail("web")
        await eventually(lambda: shop.where("web") == ["n2"] and shop.ready("web"), 30)
        await eventually(lambda: not live.controller.executor.busy, 20)
        await shop.hears("Moved")
        sample = live.controller.instruments.registry.get_sample_value
        assert sample("rematch_landings_total", {"result": "planned"}) == 1
        assert sample("rematch_steering_policy_works") == 1
        await live.controller.store.flush()
        (move,) = await live.controller.store.moves()
    (pod,) = shop.pods("web")
    assert pod["metadata"]["labels"][MOVE_LABEL] == move.id
    assert (move.from_node, move.to_node, move.outcome) == ("n1", "n2", "done")
    hints = (await shop.api.get("/apis/rematch.io/v1alpha1/placementhints/rematch"))["spec"].get("hints", {})
    assert hints == {}
    deployment = await shop.api.get(f"/apis/apps/v1/namespaces/{shop.namespace}/deployments/web")
    assert deployment["spec"]["replicas"] == 1
    assert deployment["metadata"]["generation"] == (3 if "scaleSurge" in execution else 1)


async def test_without_the_opt_in_an_ordinary_pod_is_left_alone(ordinary_shop: RealShop, account: Account) -> None:
    await settings(account, "")
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


REFUSES_STAMPS = {
    "metadata": {"name": "refuses-stamps"},
    "spec": {
        "failurePolicy": "Fail",
        "matchConstraints": {
            "resourceRules": [
                {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
            ]
        },
        "validations": [{"expression": f"!has(object.metadata.labels) || !('{MOVE_LABEL}' in object.metadata.labels)"}],
    },
}
GROUP = "/apis/admissionregistration.k8s.io/v1"


async def test_a_hint_that_makes_the_creation_fail_is_withdrawn(ordinary_shop: RealShop, account: Account) -> None:
    """Another policy refuses what ours adds; without the hint the replacement is made."""
    shop = ordinary_shop
    await settings(account, shop.namespace)
    here = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": shop.namespace}}}
    binding = {"policyName": "refuses-stamps", "validationActions": ["Deny"], "matchResources": here}
    async with as_user(account.plane, shop.namespace) as admin:
        await install_policy(admin)
        await admin.post(f"{GROUP}/validatingadmissionpolicies", REFUSES_STAMPS)
        await admin.post(
            f"{GROUP}/validatingadmissionpolicybindings", {"metadata": {"name": "refuses-stamps"}, "spec": binding}
        )
        try:
            labels = {"metadata": {"name": "stamped", "labels": {MOVE_LABEL: "m"}}}
            probe = {**labels, "spec": {"containers": [{"name": "c", "image": "lab/none"}]}}
            await admin.eventually(
                lambda: admin.call("POST", admin.here("pods"), probe, dryRun="All"), lambda found: found.status == 422
            )
            async with running_as(account) as live:
                await eventually(lambda: measured(live) and live.controller.steering.status.tried, 40)
                before = shop.pods("web")[0]["metadata"]["uid"]
                await shop.fail("web")
                await eventually(lambda: before not in {pod["metadata"]["uid"] for pod in shop.pods("web")}, 30)
                await eventually(lambda: shop.ready("web"), 60)
                await eventually(lambda: not live.controller.executor.busy, 20)
        finally:
            for kind in ("validatingadmissionpolicybindings", "validatingadmissionpolicies"):
                await admin.delete(f"{GROUP}/{kind}/refuses-stamps")
    assert MOVE_LABEL not in shop.pods("web")[0]["metadata"]["labels"]
