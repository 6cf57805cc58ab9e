"""A clock of its own and the smallest API server a kubelet can live with; the embedded one has its own tests."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from aiohttp import web

from loadtests.workloads.api import LabApi
from reactor.clock import SystemClock

Json = dict[str, Any]


class TinyApi:
    """Nodes, pods and events in dicts; `feed` is what watches see; `seen` every write in order."""

    def __init__(self) -> None:
        self.pods: dict[str, Json] = {}
        self.events: dict[str, Json] = {}
        self.nodes: dict[str, Json] = {}
        self.seen: list[tuple[str, str, Json]] = []
        self.url = ""
        self._version = 0
        self._log: list[tuple[str, bytes]] = []

    def application(self) -> web.Application:
        app = web.Application()
        app.router.add_get("/api/v1/pods", self._list)
        app.router.add_post("/api/v1/nodes", self._create_node)
        app.router.add_patch("/api/v1/nodes/{name}/status", self._patch_node)
        app.router.add_patch("/api/v1/namespaces/{ns}/pods/{name}/status", self._patch_pod)
        app.router.add_delete("/api/v1/namespaces/{ns}/pods/{name}", self._delete_pod)
        app.router.add_post("/api/v1/namespaces/{ns}/events", self._create_event)
        app.router.add_patch("/api/v1/namespaces/{ns}/events/{name}", self._patch_event)
        return app

    def bind(self, pod: Json) -> None:
        self.pods[pod["metadata"]["name"]] = pod
        self._tell("ADDED", pod)

    def ask_to_end(self, name: str, grace: int) -> None:
        pod = self.pods[name]
        pod["metadata"] |= {"deletionTimestamp": "2026-11-16T00:00:00Z", "deletionGracePeriodSeconds": grace}
        self._tell("MODIFIED", pod)

    def ready(self, name: str) -> bool:
        conditions = self.pods[name].get("status", {}).get("conditions", [])
        return any(item["type"] == "Ready" and item["status"] == "True" for item in conditions)

    def reasons(self) -> list[str]:
        return [event["reason"] for event in self.events.values()]

    def _tell(self, kind: str, item: Json) -> None:
        self._version += 1
        item["metadata"]["resourceVersion"] = str(self._version)
        self._log.append((item["spec"]["nodeName"], json.dumps({"type": kind, "object": item}).encode() + b"\n"))

    async def _list(self, request: web.Request) -> web.StreamResponse:
        node = request.query["fieldSelector"].removeprefix("spec.nodeName=")
        items = [pod for pod in self.pods.values() if pod["spec"]["nodeName"] == node]
        if "watch" not in request.query:
            return web.json_response({"metadata": {"resourceVersion": str(self._version)}, "items": items})
        response = web.StreamResponse()
        await response.prepare(request)
        position = int(request.query["resourceVersion"])
        while True:
            for owner, line in self._log[position:]:
                if owner == node:
                    await response.write(line)
            position = len(self._log)
            await asyncio.sleep(0.01)

    async def _create_node(self, request: web.Request) -> web.Response:
        body = await request.json()
        self.nodes[body["metadata"]["name"]] = body
        return web.json_response(body, status=201)

    async def _patch_node(self, request: web.Request) -> web.Response:
        self.nodes[request.match_info["name"]] |= await request.json()
        return web.json_response({})

    async def _patch_pod(self, request: web.Request) -> web.Response:
        body, pod = await request.json(), self.pods.get(request.match_info["name"])
        if pod is None:
            return web.json_response({}, status=404)
        if body["metadata"]["uid"] != pod["metadata"]["uid"]:
            return web.json_response({}, status=409)
        self.seen.append(("status", pod["metadata"]["name"], body["status"]))
        pod["status"] = body["status"]
        self._tell("MODIFIED", pod)
        return web.json_response(pod)

    async def _delete_pod(self, request: web.Request) -> web.Response:
        self.seen.append(("delete", request.match_info["name"], await request.json()))
        pod = self.pods.pop(request.match_info["name"], None)
        if pod is None:
            return web.json_response({}, status=404)
        self._tell("DELETED", pod)
        return web.json_response({})

    async def _create_event(self, request: web.Request) -> web.Response:
        body = await request.json()
        self.events[body["metadata"]["name"]] = body
        self.seen.append(("event", body["reason"], body))
        return web.json_response(body, status=201)

    async def _patch_event(self, request: web.Request) -> web.Response:
        event = self.events[request.match_info["name"]]
        event |= await request.json()
        self.seen.append(("event", event["reason"], event))
        return web.json_response(event)


@pytest.fixture
async def tiny() -> AsyncIterator[TinyApi]:
    server = TinyApi()
    runner = web.AppRunner(server.application(), shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    server.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield server
    await runner.cleanup()


@pytest.fixture
async def api(tiny: TinyApi) -> AsyncIterator[LabApi]:
    client = LabApi(tiny.url, SystemClock())
    yield client
    await client.close()


Until = Callable[[Callable[[], object]], Any]


@pytest.fixture
def until() -> Until:
    async def wait(condition: Callable[[], object]) -> None:
        for _ in range(1000):
            if condition():
                return
            await asyncio.sleep(0.01)
        pytest.fail("it did not happen within 10 s")

    return wait


@pytest.fixture
def make_pod() -> Callable[..., Json]:
    def make(name: str, annotations: dict[str, str] | None = None, **probes: Json) -> Json:
        container = {"name": "web", "image": "lab.local/web:1", "ports": [{"name": "http", "containerPort": 8080}]}
        return {
            "metadata": {
                "name": name,
                "namespace": "shop",
                "uid": f"uid-{name}",
                "labels": {"app": name},
                "annotations": annotations or {},
            },
            "spec": {
                "nodeName": "node1",
                "terminationGracePeriodSeconds": 0.5,
                "containers": [{**container, **probes, "resources": {"requests": {"cpu": "250m"}}}],
            },
        }

    return make


@pytest.fixture
def probe() -> Callable[..., Json]:
    def make(path: str = "/healthz", **values: float) -> Json:
        return {"httpGet": {"path": path, "port": "http"}, "periodSeconds": 0.1, "timeoutSeconds": 0.1} | values

    return make
