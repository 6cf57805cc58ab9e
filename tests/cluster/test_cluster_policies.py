"""The policies of the chart on a real API server: what they let pass, and what they refuse."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml

from loadtests.controlplane import ControlPlane, ControlPlaneOptions, User, control_plane
from loadtests.workloads.api import LabApi
from reactor.cluster.access_review import AccessReview
from reactor.cluster.access_review import User as Reviewed
from reactor.cluster.connection import open_connection
from reactor.cluster.event_policy import EVENTS_KEPT, events_authentic
from reactor.errors import ClusterError
from tests.support.clock import NOW

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(120)]

Json = dict[str, Any]
POLICIES = Path(__file__).parents[2] / "deploy" / "chart" / "files" / "policies"
ACCOUNT = "system:serviceaccount:rematch:rematch"
PODS, EVENTS = "/api/v1/namespaces/default/pods", "/api/v1/namespaces/default/events"
NEW_EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"
SCALE = "/apis/apps/v1/namespaces/default/deployments/web"
ADMISSION = "/apis/admissionregistration.k8s.io/v1"
COST = "controller.kubernetes.io/pod-deletion-cost"
USERS = (
    User("n1", "system:node:n1", ("system:nodes",)),
    User("tenant", "tenant", ("everything",)),
    User("ours", ACCOUNT, ("everything",)),
)


class Lab:
    """A pod `web`, a Deployment `web`, both policies in force; `tenant` and `ours` may do all that RBAC can say."""

    def __init__(self, plane: ControlPlane, admin: LabApi, users: dict[str, LabApi]) -> None:
        self.plane, self.admin, self.users = plane, admin, users

    async def refused(self, user: str, method: str, path: str, body: Json) -> str:
        """Why the API server refuses; empty if it does not."""
        api = self.users[user]
        try:
            await (api.create(path, body) if method == "POST" else api.patch(path, body))
        except ClusterError as error:
            if "denied request" in str(error):
                return str(error)
            raise
        return ""


@pytest.fixture
async def lab(tmp_path: Path) -> AsyncIterator[Lab]:
    async with AsyncExitStack() as stack:
        plane = await stack.enter_async_context(control_plane(ControlPlaneOptions(tmp_path, users=USERS)))
        clients = {user.token: plane.client(token=user.token) for user in USERS}
        admin = plane.client()
        for client in (admin, *clients.values()):
            stack.push_async_callback(client.close)
        for name, subjects in (("everything", "everything"), ("nodes", "system:nodes")):
            await admin.create("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", _all_rights(name, subjects))
        for file in ("events.yaml", "own-rights.yaml"):
            for item in yaml.safe_load_all((POLICIES / file).read_text()):
                kind = (
                    "validatingadmissionpolicybindings" if "Binding" in item["kind"] else "validatingadmissionpolicies"
                )
                await admin.create(f"{ADMISSION}/{kind}", item)
        await admin.create(PODS, _pod())
        await admin.create("/apis/apps/v1/namespaces/default/deployments", _deployment())
        opened = Lab(plane, admin, clients)
        await _until_in_force(opened)
        yield opened


async def _until_in_force(lab: Lab) -> None:
    async with asyncio.timeout(30):
        while not await lab.refused("tenant", "POST", EVENTS, _event("probing")):
            await lab.admin.delete(f"{EVENTS}/probing", {})
            await asyncio.sleep(0.1)
        while not await lab.refused("ours", "PATCH", f"{PODS}/web", {"metadata": {"annotations": {"probing": "x"}}}):
            await lab.admin.patch(f"{PODS}/web", {"metadata": {"annotations": {"probing": None}}})
            await asyncio.sleep(0.1)


async def test_only_kubelets_write_events_about_probes(lab: Lab) -> None:
    refused = lab.refused
    assert "only kubelets" in await refused("tenant", "POST", EVENTS, _event("a"))
    assert "only kubelets" in await refused("tenant", "POST", EVENTS, _event("b", reason="Killing"))
    assert "only kubelets" in await refused("tenant", "POST", NEW_EVENTS, _new_event("c"))
    assert "host in source" in await refused("n1", "POST", EVENTS, _event("d", host="n2"))
    assert not await refused("n1", "POST", EVENTS, _event("e"))
    assert "only kubelets" in await refused("tenant", "PATCH", f"{EVENTS}/e", {"count": 1000})
    assert not await refused("n1", "PATCH", f"{EVENTS}/e", {"count": 2})
    assert not await refused("tenant", "POST", EVENTS, _event("f", reason="Scheduled"))
    assert "only kubelets" in await refused("tenant", "PATCH", f"{EVENTS}/f", {"reason": "Unhealthy"})
    assert not await refused("tenant", "POST", EVENTS, _event("g", kind="ReplicaSet"))


async def test_the_controller_finds_the_policy(lab: Lab) -> None:
    connection = await open_connection(str(lab.plane.kubeconfig), None)
    try:
        policy = await lab.admin.get(f"{ADMISSION}/validatingadmissionpolicies/rematch-events")
        assert policy["metadata"]["name"] == "rematch-events"
        assert await events_authentic(connection, NOW + 1e9)
        assert not await events_authentic(connection, NOW), "not before an hour has passed"
        assert EVENTS_KEPT == 3600
        await lab.admin.delete(f"{ADMISSION}/validatingadmissionpolicybindings/rematch-events", {})
        assert not await events_authentic(connection, NOW + 1e9)
    finally:
        await connection.close()


async def test_the_controller_changes_of_a_pod_only_what_moves_need(lab: Lab) -> None:
    async def ours(metadata: Json, **spec: Any) -> str:
        return await lab.refused("ours", "PATCH", f"{PODS}/web", {"metadata": metadata, **spec})

    assert not await ours({"annotations": {COST: "-2147483647", "rematch.io/move": "m1"}})
    assert not await ours({"annotations": {COST: None, "rematch.io/move": None}})
    assert "annotations" in await ours({"annotations": {"other": "x"}})
    assert "removes only" in await ours({"annotations": {"kept": None}})
    assert "labels" in await ours({"labels": {"app": "victim"}})
    assert "labels" in await ours({"labels": {"more": "x"}})
    assert "after its pod-template-hash" in await ours({"labels": {"app": None}})
    assert "only labels and annotations" in await ours({"finalizers": ["a.b/c"]})
    assert "only labels and annotations" in await ours({}, spec={"containers": [{"name": "c", "image": "evil"}]})
    assert not await ours({"labels": {"pod-template-hash": None}}), "released"
    assert "together with" in await ours({"labels": {"more": "x"}})
    assert not await ours({"labels": {"app": None}}), "detached"
    assert not await ours({"labels": {"app": "web", "pod-template-hash": "1a2b"}}), "taken back"
    assert not await lab.refused("tenant", "PATCH", f"{PODS}/web", {"metadata": {"labels": {"any": "x"}}})


async def test_of_the_status_it_writes_one_condition(lab: Lab) -> None:
    status = f"{PODS}/web/status"

    async def ours(**fields: Any) -> str:
        return await lab.refused("ours", "PATCH", status, {"status": fields})

    unschedulable = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no room"}
    assert not await ours(conditions=[unschedulable])
    assert not await ours(conditions=[{**unschedulable, "message": "still none"}])
    assert "PodScheduled" in await ours(conditions=[{"type": "Ready", "status": "True"}])
    assert "PodScheduled" in await ours(phase="Failed")
    assert "PodScheduled" in await ours(podIP="10.0.0.9", podIPs=[{"ip": "10.0.0.9"}])
    assert "PodScheduled" in await ours(nominatedNodeName="n1")


async def test_it_scales_by_one(lab: Lab) -> None:
    async def ours(path: str, replicas: int) -> str:
        return await lab.refused("ours", "PATCH", path, {"spec": {"replicas": replicas}})

    assert not await ours(f"{SCALE}/scale", 4)
    assert not await ours(f"{SCALE}/scale", 3)
    assert "by one" in await ours(f"{SCALE}/scale", 5)
    assert "by one" in await ours(f"{SCALE}/scale", 0)
    assert not await lab.refused("tenant", "PATCH", f"{SCALE}/scale", {"spec": {"replicas": 9}})


async def test_it_may_scale_its_own_canary(lab: Lab) -> None:
    sets = "/apis/apps/v1/namespaces/default/replicasets"
    for name in ("rematch-canary-1", "web"):
        body = {**_deployment(), "kind": "ReplicaSet"}
        await lab.admin.create(sets, {**body, "metadata": {"name": name}})
    scaled = {"spec": {"replicas": 0}}
    assert not await lab.refused("ours", "PATCH", f"{sets}/rematch-canary-1", scaled)
    assert "does not change replicasets" in await lab.refused("ours", "PATCH", f"{sets}/web", scaled)


def _all_rights(name: str, group: str) -> Json:
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": group}
    return {"metadata": {"name": name}, "roleRef": role, "subjects": [subject]}


def _pod() -> Json:
    labels = {"app": "web", "pod-template-hash": "1a2b"}
    spec = {"containers": [{"name": "c", "image": "web:1"}], "schedulerName": "nobody"}
    return {"metadata": {"name": "web", "labels": labels, "annotations": {"kept": "x"}}, "spec": spec}


def _deployment() -> Json:
    template = {"metadata": {"labels": {"app": "d"}}, "spec": {**_pod()["spec"]}}
    spec = {"replicas": 3, "selector": {"matchLabels": {"app": "d"}}, "template": template}
    return {"metadata": {"name": "web"}, "spec": spec}


def _event(name: str, *, reason: str = "Unhealthy", host: str = "n1", kind: str = "Pod") -> Json:
    return {
        "metadata": {"name": name, "namespace": "default"},
        "involvedObject": {"kind": kind, "namespace": "default", "name": "web"},
        "reason": reason,
        "type": "Warning",
        "message": "Liveness probe failed: forged",
        "count": 1,
        "source": {"component": "kubelet", "host": host},
    }


def _new_event(name: str) -> Json:
    return {
        "metadata": {"name": name, "namespace": "default"},
        "regarding": {"kind": "Pod", "namespace": "default", "name": "web"},
        "eventTime": "2026-11-17T00:00:00.000000Z",
        "action": "Probing",
        "reportingController": "kubelet",
        "reportingInstance": "n1",
        "reason": "Unhealthy",
        "type": "Warning",
        "note": "Liveness probe failed: forged",
    }


async def test_a_token_is_reviewed(lab: Lab) -> None:
    connection = await open_connection(str(lab.plane.kubeconfig), None)
    try:
        review = AccessReview(connection, "rematch")
        assert await review.user_of("nobody's") is None
        node, tenant = await review.user_of("n1"), await review.user_of("tenant")
        assert node is not None
        assert tenant is not None
        assert (tenant.username, "everything" in tenant.groups) == ("tenant", True)
        assert await review.may_look(tenant)
        assert not await review.may_look(Reviewed("stranger", groups=("system:authenticated",)))
    finally:
        await connection.close()
