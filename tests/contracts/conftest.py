"""The servers that have to keep the contract.

Every test runs on each of them, in a namespace of its own. A server of another kind joins by an entry in `_SERVERS`;
REMATCH_CONTRACT_URL and REMATCH_CONTRACT_TOKEN let any running API server take part (one that nobody else uses).
"""

from __future__ import annotations

import os
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import aiohttp
import pytest

from loadtests.embedded import ClusterOptions, EmbeddedCluster
from loadtests.embedded.plain_client import PlainClient

_URL, _TOKEN = os.environ.get("REMATCH_CONTRACT_URL", ""), os.environ.get("REMATCH_CONTRACT_TOKEN", "")


@dataclass(frozen=True)
class Server:
    url: str
    token: str
    expire_history: Callable[[], Awaitable[None]] | None = None
    """Makes the server forget past versions; None where that cannot be asked for."""


@asynccontextmanager
async def _embedded() -> AsyncIterator[Server]:
    # Its own scheduler is off: where contract pods run is up to the tests.
    async with EmbeddedCluster(ClusterOptions(token="contract", schedule=frozenset())) as cluster:

        async def expire() -> None:
            cluster.store.compact()

        yield Server(cluster.url, "contract", expire)


@asynccontextmanager
async def _given() -> AsyncIterator[Server]:
    yield Server(_URL, _TOKEN)


_SERVERS = {"embedded": _embedded, **({"given": _given} if _URL else {})}


@pytest.fixture(params=list(_SERVERS))
async def server(request: pytest.FixtureRequest) -> AsyncIterator[Server]:
    async with _SERVERS[request.param]() as running:
        yield running


@pytest.fixture
async def api(server: Server) -> AsyncIterator[PlainClient]:
    headers = {"Authorization": f"Bearer {server.token}"}
    connector = aiohttp.TCPConnector(ssl=False)
    async with aiohttp.ClientSession(headers=headers, connector=connector, read_bufsize=2**20) as session:
        client = PlainClient(server.url, session, f"contract-{uuid.uuid4().hex[:8]}")
        created = await client.post("/api/v1/namespaces", {"metadata": {"name": client.namespace}})
        assert created.status == 201
        yield client
        await client.delete(client.here("pods"), {"gracePeriodSeconds": 0})
        await client.delete(f"/api/v1/namespaces/{client.namespace}")


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
