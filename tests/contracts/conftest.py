"""The servers that have to keep the contract.

Every test runs on each of them, in a namespace of its own: on the embedded server, and (`make test-cluster`) on the
real one. REMATCH_CONTRACT_URL and REMATCH_CONTRACT_TOKEN let any running API server take part (one that nobody else
uses).
"""

from __future__ import annotations

import os
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import pytest
import yaml

from loadtests.controlplane import ControlPlane, serve_metrics
from loadtests.embedded import ClusterOptions, EmbeddedCluster, NodeMetrics, PodMetrics
from loadtests.embedded.plain_client import Answer, PlainClient
from reactor.cluster.connection import open_connection
from tests.support.lossy import LossyConnection

_URL, _TOKEN = os.environ.get("REMATCH_CONTRACT_URL", ""), os.environ.get("REMATCH_CONTRACT_TOKEN", "")


@dataclass(frozen=True)
class Server:
    url: str
    token: str
    expire_history: Callable[[], Awaitable[None]] | None = None
    """Makes the server forget past versions; None where that cannot be asked for."""


@pytest.fixture
async def embedded_server() -> AsyncIterator[Server]:
    # Its own scheduler is off: where contract pods run is up to the tests.
    async with EmbeddedCluster(ClusterOptions(token="contract", schedule=frozenset())) as cluster:

        async def expire() -> None:
            cluster.store.compact()

        yield Server(cluster.url, "contract", expire)


@pytest.fixture
def real_server(real_plane: ControlPlane) -> Server:
    return Server(real_plane.url, real_plane.admin_token, real_plane.forget_history)


@pytest.fixture
def given_server() -> Server:
    return Server(_URL, _TOKEN)


_OWN = ["embedded", pytest.param("real", marks=pytest.mark.cluster)]
_SERVERS = [*_OWN, *(["given"] if _URL else [])]


@pytest.fixture(params=_SERVERS)
def server(request: pytest.FixtureRequest) -> Server:
    found: Server = request.getfixturevalue(f"{request.param}_server")
    return found


@asynccontextmanager
async def _client(server: Server) -> AsyncIterator[PlainClient]:
    headers = {"Authorization": f"Bearer {server.token}"}
    connector = aiohttp.TCPConnector(ssl=False)
    async with aiohttp.ClientSession(headers=headers, connector=connector, read_bufsize=2**20) as session:
        yield PlainClient(server.url, session, f"contract-{uuid.uuid4().hex[:8]}")


class FixedMetrics:
    def node_usage(self) -> list[NodeMetrics]:
        return [NodeMetrics("n1", 0.5, 2**20, 1e9)]

    def pod_usage(self) -> list[PodMetrics]:
        container = (("c", 0.25, 2**20),)
        return [
            PodMetrics(space, name, container, 1e9, (("app", name),)) for space, name in (("one", "a"), ("two", "b"))
        ]


@pytest.fixture
async def embedded_measured() -> AsyncIterator[Server]:
    async with EmbeddedCluster(ClusterOptions(token="contract"), metrics=FixedMetrics()) as cluster:
        yield Server(cluster.url, "contract")


@pytest.fixture
async def real_measured(real_plane: ControlPlane) -> AsyncIterator[Server]:
    async with serve_metrics(real_plane, FixedMetrics()):
        yield Server(real_plane.url, real_plane.admin_token)


@pytest.fixture(params=_OWN)
def measured_server(request: pytest.FixtureRequest) -> Server:
    found: Server = request.getfixturevalue(f"{request.param}_measured")
    return found


@pytest.fixture
async def measured_api(measured_server: Server) -> AsyncIterator[PlainClient]:
    async with _client(measured_server) as client:
        yield client


@pytest.fixture
async def api(server: Server) -> AsyncIterator[PlainClient]:
    async with _client(server) as client:
        created = await client.post("/api/v1/namespaces", {"metadata": {"name": client.namespace}})
        assert created.status == 201
        await client.eventually(lambda: _try_pod(client), lambda answer: answer.status == 201)
        yield client
        await client.delete(client.here("pods"), {"gracePeriodSeconds": 0})
        await client.delete(f"/api/v1/namespaces/{client.namespace}")


async def _try_pod(api: PlainClient) -> Answer:
    """A real server takes pods once the new namespace has its service account."""
    body = {"metadata": {"name": "try"}, "spec": {"containers": [{"name": "c", "image": "lab/none"}]}}
    return await api.call("POST", api.here("pods"), body, dryRun="All")


Connect = Callable[[], Awaitable[LossyConnection]]
"""Opens a connection to the server of the test, as the controller does."""


@pytest.fixture
async def connect(server: Server, tmp_path: Path) -> AsyncIterator[Connect]:
    cluster = {"server": server.url} | ({"insecure-skip-tls-verify": True} if server.url.startswith("https") else {})
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "c", "user": {"token": server.token}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
        "current-context": "c",
    }
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump(content))
    async with AsyncExitStack() as stack:

        async def opened() -> LossyConnection:
            connection = LossyConnection(await open_connection(str(path)))
            stack.push_async_callback(connection.close)
            return connection

        yield opened


@pytest.fixture
async def expire_history(server: Server) -> Callable[[], Awaitable[None]]:
    if server.expire_history is None:
        pytest.skip("this server cannot be asked to forget")
    return server.expire_history


@pytest.fixture
async def node(api: PlainClient) -> AsyncIterator[str]:
    """A node that nobody runs: what is bound to it stays as the test leaves it."""
    name = f"node-{api.namespace}"
    amounts = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    status = {"allocatable": amounts, "capacity": amounts, "conditions": [{"type": "Ready", "status": "True"}]}
    created = await api.post("/api/v1/nodes", {"metadata": {"name": name}, "status": status})
    assert created.status == 201
    yield name
    await api.delete(api.here("pods"), {"gracePeriodSeconds": 0})
    await api.delete(f"/api/v1/nodes/{name}")


@pytest.fixture
def make_pod(api: PlainClient) -> Callable[..., Awaitable[str]]:
    """Creates a pod and returns its UID; with `ready` given it runs, as its kubelet would report it."""

    async def make(
        name: str, *, node: str = "", ready: bool | None = None, app: str = "app", **metadata: object
    ) -> str:
        spec: dict[str, object] = {"containers": [{"name": "c", "image": "lab/none"}], "schedulerName": "nobody"}
        if node:
            spec["nodeName"] = node
        body = {"metadata": {"name": name, "labels": {"app": app}, **metadata}, "spec": spec}
        created = await api.post(api.here("pods"), body)
        assert created.status == 201, created.body
        if ready is not None:
            condition = {"type": "Ready", "status": "True" if ready else "False"}
            status = {"status": {"phase": "Running", "conditions": [condition]}}
            assert (await api.patch(api.here("pods", f"{name}/status"), status)).status == 200
        return str(created.body["metadata"]["uid"])

    return make
