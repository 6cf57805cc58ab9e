"""The cluster as a whole: its life, its kubeconfig, its metrics, its speed."""

from __future__ import annotations

import asyncio
import signal
import stat
import sys
import time
from collections.abc import Iterable
from pathlib import Path

import aiohttp
import yaml

from loadtests.embedded import ClusterOptions, EmbeddedCluster, NodeMetrics, PodMetrics, changed
from loadtests.embedded.plain_client import PlainClient
from loadtests.embedded.resources import NODES, PODS


class _Metrics:
    def node_usage(self) -> Iterable[NodeMetrics]:
        return [NodeMetrics("n1", 1.5, 2**31, at=1_800_000_000.0)]

    def pod_usage(self) -> Iterable[PodMetrics]:
        containers = (("c", 0.25, 2**26),)
        return [
            PodMetrics("default", "p", containers, at=1_800_000_000.0, labels=(("app", "web"),)),
            PodMetrics("other", "q", containers, at=1_800_000_000.0),
        ]


async def test_metrics_come_from_the_provider() -> None:
    async with EmbeddedCluster(metrics=_Metrics()) as cluster, aiohttp.ClientSession() as session:
        client = PlainClient(cluster.url, session, "default")
        nodes = await client.get("/apis/metrics.k8s.io/v1beta1/nodes")
        assert nodes.body["kind"] == "NodeMetricsList"
        (node,) = nodes.body["items"]
        assert node["usage"] == {"cpu": "1500000000n", "memory": "2097152Ki"}
        assert (node["timestamp"], node["window"]) == ("2027-01-15T08:00:00Z", "10s")
        group = "apis/metrics.k8s.io/v1beta1"
        assert (await client.get(client.here("pods", group=group))).names == ["p"]
        assert (await client.get(f"/{group}/pods", labelSelector="app=web")).names == ["p"]
        pod = (await client.get(client.here("pods", "p", group=group))).body
        assert pod["containers"] == [{"name": "c", "usage": {"cpu": "250000000n", "memory": "65536Ki"}}]
        assert (await client.get(client.here("pods", "q", group=group))).status == 404


async def test_without_a_provider_the_metrics_are_empty(client: PlainClient) -> None:
    assert (await client.get("/apis/metrics.k8s.io/v1beta1/pods")).body["items"] == []


async def test_the_kubeconfig_is_private_and_says_where(tmp_path: Path) -> None:
    async with EmbeddedCluster(ClusterOptions(token="t")) as cluster:
        path = cluster.kubeconfig(tmp_path / "kubeconfig")
        content = yaml.safe_load(path.read_text())
        assert content["clusters"][0]["cluster"]["server"] == cluster.url
        assert content["users"][0]["user"] == {"token": "t"}
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


async def test_the_same_seed_gives_the_same_names_and_uids() -> None:
    async def identities() -> list[tuple[str, str]]:
        async with EmbeddedCluster(ClusterOptions(seed=5)) as cluster:
            spec = {"containers": [{"name": "c", "image": "i"}]}
            pods = [cluster.api.create(PODS, {"metadata": {"generateName": "p-"}, "spec": spec}) for _ in range(3)]
            return [(pod["metadata"]["name"], pod["metadata"]["uid"]) for pod in pods]

    assert await identities() == await identities()


async def test_stopping_ends_open_watches_at_once() -> None:
    cluster = EmbeddedCluster()
    await cluster.start()
    async with aiohttp.ClientSession() as session:
        client = PlainClient(cluster.url, session, "default")

        async def watch() -> int:
            return len([event async for event in client.watch("/api/v1/namespaces", timeoutSeconds=60)])

        watching = asyncio.create_task(watch())
        await asyncio.sleep(0.1)
        started = time.monotonic()
        await cluster.stop()
        assert await asyncio.wait_for(watching, 2) == 5
        assert time.monotonic() - started < 2


async def test_a_watcher_that_falls_behind_is_told(client: PlainClient, cluster: EmbeddedCluster) -> None:
    cluster.api.create(NODES, {"metadata": {"name": "n"}})
    version = cluster.store.version
    cluster.store.compact()
    cluster.api.update(NODES, changed(cluster.api.get(NODES, "", "n"), spec={"unschedulable": True}))
    kinds = [event["type"] async for event in client.watch("/api/v1/nodes", resourceVersion=version - 1)]
    assert kinds == ["ERROR"]


async def test_a_watch_that_starts_amid_changes_tells_each_state_once(
    client: PlainClient, cluster: EmbeddedCluster
) -> None:
    cluster.api.create(NODES, {"metadata": {"name": "n"}})

    async def watch() -> list[int]:
        events = [event async for event in client.watch("/api/v1/nodes", timeoutSeconds=1)]
        return [int(event["object"]["metadata"]["resourceVersion"]) for event in events]

    watching = [asyncio.create_task(watch()) for _ in range(5)]
    for number in range(60):
        status = {"capacity": {"cpu": str(number + 1)}}
        cluster.api.update_status(NODES, changed(cluster.api.get(NODES, "", "n"), status=status))
        await asyncio.sleep(0.001)
    for seen in await asyncio.gather(*watching):
        assert seen == sorted(set(seen))
        assert seen[-1] == cluster.store.version


async def test_thousands_of_changes_reach_a_watcher_in_order(client: PlainClient, cluster: EmbeddedCluster) -> None:
    cluster.api.create(NODES, {"metadata": {"name": "n"}})
    version, changes = cluster.store.version, 3000

    async def watch() -> list[int]:
        seen: list[int] = []
        async for event in client.watch("/api/v1/nodes", resourceVersion=version, timeoutSeconds=30):
            seen.append(int(event["object"]["metadata"]["resourceVersion"]))
            if len(seen) == changes:
                break
        return seen

    watching = asyncio.create_task(watch())
    for number in range(changes):
        status = {"capacity": {"cpu": str(number + 1)}}
        cluster.api.update_status(NODES, changed(cluster.api.get(NODES, "", "n"), status=status))
        if number % 100 == 0:
            await asyncio.sleep(0)
    seen = await asyncio.wait_for(watching, 30)
    assert seen == sorted(set(seen))
    assert len(seen) == changes


async def test_it_runs_as_a_program_and_ends_on_a_signal(tmp_path: Path) -> None:
    config = tmp_path / "kubeconfig"
    program = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "loadtests.embedded",
        "--kubeconfig",
        str(config),
        stdout=asyncio.subprocess.PIPE,
        cwd=Path(__file__).parents[3],
    )
    assert program.stdout is not None
    line = (await asyncio.wait_for(program.stdout.readline(), 20)).decode()
    assert line.startswith("serving http://127.0.0.1:")
    async with aiohttp.ClientSession() as session:
        url = yaml.safe_load(config.read_text())["clusters"][0]["cluster"]["server"]
        async with session.get(f"{url}/readyz") as response:
            assert await response.text() == "ok"
    program.send_signal(signal.SIGTERM)
    assert await asyncio.wait_for(program.wait(), 5) == 0
