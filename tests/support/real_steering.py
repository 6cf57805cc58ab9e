"""Steering on a real control plane: the chart's policy, and nodes that nobody runs (scheduling alone shows where a pod
lands). Each node's label kubernetes.io/hostname differs from its name."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import yaml

from loadtests.chart import CHART
from loadtests.controlplane import ControlPlane
from loadtests.embedded.plain_client import Answer, PlainClient
from loadtests.nodes.in_cluster import COLLECTIONS
from reactor.clock import SystemClock, rfc3339
from reactor.cluster.connection import KubernetesConnection, open_connection
from reactor.cluster.hints import HINTS_PATH, MOVE_LABEL, OBJECT_NAME, Hint, HintWriter
from reactor.cluster.records import Owner
from reactor.cluster.steering_policy import SteeringPolicy
from reactor.execution.steering import HintSteering
from reactor.settings.model import Mode
from reactor.state.moves import Move, PodRef

Json = dict[str, Any]
APPS = "apis/apps/v1"
REPLICA_SET_CONTROLLER = "system:serviceaccount:kube-system:replicaset-controller"
POLICIES = COLLECTIONS["MutatingAdmissionPolicy"]
BINDINGS = COLLECTIONS["MutatingAdmissionPolicyBinding"]
_HEARTBEAT = 10.0
_CLOCK = SystemClock()


def policy_documents() -> dict[str, Json]:
    """The policy and its binding, by kind."""
    documents = yaml.safe_load_all((CHART / "files" / "policies" / "hints.yaml").read_text())
    return {document["kind"]: document for document in documents}


@dataclass(frozen=True)
class SteeredCluster:
    plane: ControlPlane
    api: PlainClient
    connection: KubernetesConnection
    hints: HintWriter
    steering: HintSteering
    policy: SteeringPolicy
    nodes: tuple[str, ...]

    def hostname(self, node: str) -> str:
        return f"host-of-{node}"

    async def deploy(self, name: str, replicas: int = 1, *, kind: str = "Deployment", **spec: Any) -> None:
        """Until every pod has a node."""
        await self.api.post(self.api.here(f"{kind.lower()}s", group=APPS), workload(kind, name, replicas, spec))
        await self.placed(name, replicas)

    async def pods(self, name: str) -> list[Json]:
        listed = await self.api.get(self.api.here("pods"), labelSelector=f"app={name}")
        return [pod for pod in listed.body["items"] if "deletionTimestamp" not in pod["metadata"]]

    async def placed(self, name: str, replicas: int) -> list[Json]:
        async with asyncio.timeout(30):
            while True:
                pods = await self.pods(name)
                if len(pods) == replicas and all("nodeName" in pod["spec"] for pod in pods):
                    return pods
                await asyncio.sleep(0.02)

    async def move(self, pod: Json, target: str, *, hard: bool = False) -> Json:
        """The pod that its owner makes instead after a hint, when it has a node."""
        move = move_of(pod, target)
        await self.steering.hint(move, hard=hard)
        try:
            return await self.replaced(pod)
        finally:
            await self.steering.withdraw([move.id])

    async def replaced(self, pod: Json) -> Json:
        """Deleted at once: nobody runs the node who could let it end."""
        name = pod["metadata"]["labels"]["app"]
        known = {each["metadata"]["uid"] for each in await self.pods(name)}
        await self.api.delete(self.api.here("pods", pod["metadata"]["name"]), {"gracePeriodSeconds": 0})
        pods = await self.placed(name, len(known))
        (found,) = [each for each in pods if each["metadata"]["uid"] not in known]
        return found

    async def write(self, hints: Mapping[str, Hint]) -> None:
        """Until the API server applies one of them: it learns of them by a watch of its own."""
        await self.hints.change(lambda _: hints)
        owner, hint = next((owner, hint) for owner, hint in hints.items() if hint.pod is None)
        async with asyncio.timeout(20):
            while stamp(await self.dry_run(REPLICA_SET_CONTROLLER, owner, {})) != hint.move:
                await asyncio.sleep(0.02)

    async def dry_run(self, user: str, owner: str, spec: Json, namespace: str = "", **meta: Any) -> Json:
        """What the API server would make of this user's pod with this owner."""
        async with as_user(self.plane, namespace or self.api.namespace, user) as api:
            answer = await api.call("POST", api.here("pods"), owned_pod(owner, spec, **meta), dryRun="All")
        assert answer.status == 201, answer.body
        return answer.body

    async def until_in_force(self, *, works: bool = True) -> None:
        """The API server learns of a policy a moment after it was written."""
        async with asyncio.timeout(30):
            while bool(await self.policy.try_canary()) is works:
                await asyncio.sleep(0.1)

    async def cordon(self, node: str, *, unschedulable: bool) -> None:
        await self.api.patch(f"/api/v1/nodes/{node}", {"spec": {"unschedulable": unschedulable}})

    async def heartbeats(self) -> None:
        """Until cancelled: a node that is silent for longer is taken for dead."""
        while True:
            for node in self.nodes:
                await self.api.patch(f"/api/v1/nodes/{node}/status", {"status": _node_status()})
            await asyncio.sleep(_HEARTBEAT)


def move_of(pod: Json, target: str) -> Move:
    meta = pod["metadata"]
    (owner,) = meta["ownerReferences"]
    return Move(
        id=uuid.uuid4().hex[:16],
        plan_id="plan",
        pod=PodRef(meta["namespace"], meta["name"], meta["uid"]),
        owner=Owner(owner["kind"], owner["name"], owner["uid"]),
        template_hash="",
        workload="",
        source=pod["spec"]["nodeName"],
        target=target,
    )


def stamp(pod: Json) -> str | None:
    found: str | None = pod["metadata"].get("labels", {}).get(MOVE_LABEL)
    return found


def owned_pod(owner: str, spec: Json, **meta: Any) -> Json:
    reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": owner, "controller": True}
    return {
        "metadata": {"name": "p", "ownerReferences": [reference], **meta},
        "spec": {"containers": [{"name": "c", "image": "lab/none"}], **spec},
    }


def workload(kind: str, name: str, replicas: int, spec: Mapping[str, Any]) -> Json:
    container = {"name": "c", "image": "lab/none", "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}}}
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container], **spec}}
    stateful = {"serviceName": name, "podManagementPolicy": "Parallel"} if kind == "StatefulSet" else {}
    return {
        "metadata": {"name": name},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template, **stateful},
    }


@asynccontextmanager
async def open_steered_cluster(
    plane: ControlPlane, folder: Path, names: tuple[str, ...] = ("a", "b", "c", "d")
) -> AsyncIterator[SteeredCluster]:
    """Whatever happens its nodes, pods, hints and the policy are gone afterwards."""
    run = uuid.uuid4().hex[:6]
    async with AsyncExitStack() as stack:
        api = await stack.enter_async_context(as_user(plane, f"steered-{run}"))
        connection = await open_connection(str(plane.write_kubeconfig(folder / "admin", token=plane.admin_token)))
        stack.push_async_callback(connection.close)
        hints = HintWriter(connection, _CLOCK)
        cluster = SteeredCluster(
            plane,
            api,
            connection,
            hints,
            HintSteering(hints, lambda node: f"host-of-{node}", lambda: Mode.ACT),
            SteeringPolicy(connection, hints, _CLOCK, api.namespace),
            tuple(f"{name}-{run}" for name in names),
        )
        await api.post("/api/v1/namespaces", {"metadata": {"name": api.namespace}})
        stack.push_async_callback(_clear, cluster)
        await _create_nodes(cluster)
        beating = asyncio.create_task(cluster.heartbeats())
        stack.push_async_callback(_end, beating)
        await install_policy(api)
        await cluster.until_in_force()
        yield cluster


@asynccontextmanager
async def as_user(plane: ControlPlane, namespace: str, user: str = "") -> AsyncIterator[PlainClient]:
    """The admin, or somebody whom the admin impersonates, with all rights."""
    headers = {"Authorization": f"Bearer {plane.admin_token}"}
    if user:
        headers |= {"Impersonate-User": user, "Impersonate-Group": "system:masters"}
    async with aiohttp.ClientSession(headers=headers, connector=aiohttp.TCPConnector(ssl=False)) as session:
        yield PlainClient(plane.url, session, namespace)


async def install_policy(api: PlainClient) -> None:
    for kind, document in policy_documents().items():
        answer = await api.call("POST", COLLECTIONS[kind], document, fieldValidation="Strict")
        assert answer.status in (201, 409), answer.body


async def remove_policy(api: PlainClient) -> None:
    for collection in (BINDINGS, POLICIES):
        await api.delete(f"{collection}/rematch-hints")


async def _create_nodes(cluster: SteeredCluster) -> None:
    for node in cluster.nodes:
        labels = {"kubernetes.io/hostname": cluster.hostname(node)}
        body = {"metadata": {"name": node, "labels": labels}, "status": _node_status()}
        answer = await cluster.api.post("/api/v1/nodes", body)
        assert answer.status == 201, answer.body
    await cluster.api.eventually(lambda: cluster.api.get("/api/v1/nodes"), lambda found: _untainted(found, cluster))


def _untainted(found: Answer, cluster: SteeredCluster) -> bool:
    ours = [node for node in found.body["items"] if node["metadata"]["name"] in cluster.nodes]
    return not any(node["spec"].get("taints") for node in ours)


def _node_status() -> Json:
    amounts = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    condition = {"type": "Ready", "status": "True", "lastHeartbeatTime": rfc3339(_CLOCK.now())}
    return {"allocatable": amounts, "capacity": amounts, "conditions": [condition]}


async def _clear(cluster: SteeredCluster) -> None:
    api = cluster.api
    await remove_policy(api)
    await api.delete(f"{HINTS_PATH}/{OBJECT_NAME}")
    for kind in ("deployments", "statefulsets", "replicasets"):
        await api.delete(api.here(kind, group=APPS), {"propagationPolicy": "Background"})
    async with asyncio.timeout(30):
        while (await api.get(api.here("pods"))).body["items"]:
            await api.delete(api.here("pods"), {"gracePeriodSeconds": 0})
            await asyncio.sleep(0.1)
    for node in cluster.nodes:
        await api.delete(f"/api/v1/nodes/{node}")
    await api.delete(f"/api/v1/namespaces/{api.namespace}")


async def _end(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
