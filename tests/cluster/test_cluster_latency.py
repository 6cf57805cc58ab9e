"""LATENCY on a real control plane: the manifests, the meter with the rights of its account, and test 1 in short."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from loadtests.controlplane import ControlPlane
from loadtests.experiments.latency.lab import NAMESPACE, meter_rights
from loadtests.mosquitto import running_mosquitto
from loadtests.nodes.in_cluster import COLLECTIONS, create
from loadtests.tools.ports import free_ports
from loadtests.workloads.api import LabApi
from reactor.clock import SystemClock
from reactor.cluster.connection import open_connection
from reactor.errors import ClusterError
from reactor.meter.client import LatencyClient, Publishing
from reactor.meter.discovery import Discovery, MeasuredPod
from reactor.meter.echo import echo_server
from reactor.meter.measuring import MeterRequests
from reactor.signals.mqtt import Broker, BrokerAccess, connected

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(240)]

Json = dict[str, Any]
CLOCK = SystemClock()
HOST = "127.0.0.1"
FOLDER = Path(__file__).parents[2] / "deploy" / "latency"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"


@pytest.fixture
async def api(real_plane: ControlPlane) -> AsyncIterator[LabApi]:
    opened = real_plane.client(CLOCK)
    await create(opened, [{"kind": "Namespace", "metadata": {"name": NAMESPACE}}])
    yield opened
    await opened.close()


async def test_the_api_server_takes_the_manifests(api: LabApi) -> None:
    documents = [item for file in FOLDER.glob("*.yaml") for item in yaml.safe_load_all(file.read_text())]
    for item in documents:
        if item["kind"] != "Namespace":
            place = COLLECTIONS[item["kind"]].format(NAMESPACE)
            made = await api.create(f"{place}?dryRun=All&fieldValidation=Strict", item)
            assert made["metadata"]["name"] == item["metadata"]["name"]


async def test_the_meter_finds_and_measures_pods_with_the_rights_of_its_account(
    real_plane: ControlPlane, api: LabApi, tmp_path: Path
) -> None:
    await create(api, meter_rights())
    uid = await _ready_pod(api)
    (port,) = free_ports(HOST, 1)
    token = await real_plane.token(NAMESPACE, "rematch-latency-meter")
    kubeconfig = real_plane.write_kubeconfig(tmp_path / "kubeconfig", token=token)
    connection = await open_connection(str(kubeconfig), None)
    broker = Broker(HOST, port, tls=False)
    try:
        selectors = ("rematch.io/latency=target", "rematch.io/latency=probe")
        discovery = Discovery(connection, NAMESPACE, selectors)
        async with asyncio.timeout(20):  # rules are in force a moment after they were written
            while await _refused(discovery):
                await asyncio.sleep(0.1)
        assert await discovery.pods() == [MeasuredPod("app", uid, "far")]
        assert await discovery.address("far") == HOST
        with pytest.raises(ClusterError, match="403"):
            await Discovery(connection, "default", selectors).pods()
        async with (
            running_mosquitto(tmp_path, port),
            echo_server(HOST, 0, CLOCK) as (_, echo),
            connected(broker, BrokerAccess(), "listener") as listener,
            connected(broker, BrokerAccess(), "meter") as sender,
        ):
            await listener.subscribe("rematch/latency/+")
            publishing = Publishing(broker, BrokerAccess(), "meter", "rematch/latency", NAMESPACE)
            await LatencyClient(discovery, MeterRequests(echo), publishing, CLOCK).once(sender)
            topic, payload = await anext(listener.messages())
    finally:
        await connection.close()
        await api.delete(f"{PODS}/app", {"gracePeriodSeconds": 0})
        await api.delete("/api/v1/nodes/far", {})
    message = json.loads(payload)
    assert topic == f"rematch/latency/{NAMESPACE}"
    assert (message["pod"], message["uid"], message["loss"]) == ("app", uid, 0.0)
    assert 0 < message["rttSeconds"] < 1


async def test_test_1_of_the_thesis_in_short(tmp_path: Path) -> None:
    """A fifth of the delays; the whole experiment is `rematch lab experiment latency`."""
    command = ["lab", "experiment", "latency", "--only-first", "--pace", "0.2", "--jobs", "1", "--state", str(tmp_path)]
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", "from reactor.cli.main import main; main()", *command),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    assert process.returncode == 0, output.decode()
    (run,) = json.loads((tmp_path / "summary.json").read_text())["runs"]
    assert run["optimal"]
    assert run["failed"] == 0
    assert run["toFartherWorker"] == 0
    iterations, target_moves, _ = run["rounds"][0]
    assert iterations <= 6
    assert target_moves <= 3


async def _refused(discovery: Discovery) -> bool:
    try:
        await discovery.pods()
        await discovery.address("far")
    except ClusterError:
        return True
    return False


async def _ready_pod(api: LabApi) -> str:
    """As its kubelet shows it; the UID."""
    await api.create("/api/v1/nodes", {"metadata": {"name": "far"}})
    await api.patch("/api/v1/nodes/far/status", {"status": {"addresses": [{"type": "InternalIP", "address": HOST}]}})
    labels = {"rematch.io/latency": "target"}
    spec: Json = {
        "nodeName": "far",
        "containers": [{"name": "app", "image": "none"}],
        "tolerations": [{"operator": "Exists"}],
    }
    async with asyncio.timeout(20):
        while True:
            try:
                pod = await api.create(PODS, {"metadata": {"name": "app", "labels": labels}, "spec": spec})
                break
            except ClusterError:  # the account `default` of a new namespace is made a moment later
                await asyncio.sleep(0.1)
    ready = {"type": "Ready", "status": "True"}
    await api.patch(f"{PODS}/app/status", {"status": {"phase": "Running", "conditions": [ready]}})
    return str(pod["metadata"]["uid"])
