"""Meter, a real Mosquitto, and the controller's side."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import shutil
from pathlib import Path

import pytest

from loadtests.controlplane.credentials import CertificateMaker
from loadtests.mosquitto import running_mosquitto
from loadtests.tools.ports import free_ports
from reactor.background.latency_listening import LatencyListening
from reactor.clock import SystemClock
from reactor.cluster.api import ApiRequest, ApiResponse
from reactor.errors import BrokerError
from reactor.meter.client import LatencyClient, Publishing
from reactor.meter.discovery import Discovery
from reactor.meter.echo import echo_server
from reactor.meter.measuring import MeterRequests
from reactor.signals.mqtt import Broker, BrokerAccess, connected
from tests.support.clock import eventually
from tests.support.cluster import make_node, make_pod, make_settings
from tests.support.rig import Rig

HOST = "127.0.0.1"
pytestmark = pytest.mark.skipif(
    shutil.which("mosquitto", path=f"{os.environ.get('PATH', '')}:/usr/sbin") is None,
    reason="mosquitto is not here: apt-get install --no-install-recommends mosquitto",
)


class OnePod:
    """An API server with one target on one node."""

    def __init__(self, uid: str) -> None:
        ready = [{"type": "Ready", "status": "True"}]
        pod = {"metadata": {"name": "app", "uid": uid}, "spec": {"nodeName": "far"}, "status": {"conditions": ready}}
        address = {"type": "InternalIP", "address": HOST}
        self._answers: dict[str, object] = {
            "/api/v1/namespaces/edge/pods": {"items": [pod]},
            "/api/v1/nodes/far": {"metadata": {"name": "far"}, "status": {"addresses": [address]}},
        }

    async def send(self, request: ApiRequest) -> ApiResponse:
        return ApiResponse(200, json.dumps(self._answers[request.path]).encode())

    async def close(self) -> None:
        pass


async def test_what_the_meter_measures_reaches_the_state_also_after_the_broker_was_away(tmp_path: Path) -> None:
    (port,) = free_ports(HOST, 1)
    broker = Broker(HOST, port, tls=False)
    rig = Rig(make_settings(latency={"broker": str(broker)}), SystemClock())  # type: ignore[arg-type]
    app = make_pod("app", namespace="edge", node="far", labels={"rematch.io/latency": "target"})
    rig.sync(make_node("far"), app)
    messages = rig.instruments.latency_messages
    listening = LatencyListening(rig.state, lambda: rig.settings, SystemClock(), messages, BrokerAccess())

    def accepted() -> float:
        return float(messages.labels("accepted")._value.get())

    async with echo_server(HOST, 0, SystemClock()) as (_, echo):
        discovery = Discovery(OnePod(app.uid), "edge", ("a=b",))  # type: ignore[arg-type]
        publishing = Publishing(broker, BrokerAccess(), "meter", "rematch/latency", "edge")
        meter = LatencyClient(discovery, MeterRequests(echo), publishing, SystemClock())
        tasks = [asyncio.create_task(listening.run()), asyncio.create_task(meter.run(0.1))]
        try:
            await eventually(lambda: "not heard" in listening.problem, 20.0)
            for _ in range(2):
                before = accepted()
                async with running_mosquitto(tmp_path, port):
                    await eventually(lambda before=before: accepted() > before, 20.0)  # type: ignore[misc]
                    assert listening.problem == ""
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
    found = rig.state.latency.measured(app.uid)
    assert found is not None
    assert 0 < found.rtt < 1


async def test_garbage_and_foreign_messages_are_counted_by_reason(tmp_path: Path) -> None:
    (port,) = free_ports(HOST, 1)
    rig = Rig(make_settings(latency={"broker": f"mqtt://{HOST}:{port}"}))
    rig.sync(make_node("far"))
    messages = rig.instruments.latency_messages
    listening = LatencyListening(rig.state, lambda: rig.settings, SystemClock(), messages, BrokerAccess())
    broker = Broker(HOST, port, tls=False)
    async with running_mosquitto(tmp_path, port):
        task = asyncio.create_task(listening.run())
        try:
            await eventually(lambda: listening._since is not None, 20.0)
            async with connected(broker, BrokerAccess(), "stranger") as connection:
                await connection.publish("rematch/latency/edge", b"\x00garbage")
                await connection.publish("rematch/latency/edge", b"x" * 20_000)
            await eventually(lambda: messages.labels("malformed")._value.get() >= 1, 20.0)
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def test_a_broker_that_wants_a_password_gets_it_from_files_only_if_it_is_the_right_host(tmp_path: Path) -> None:
    (port,) = free_ports(HOST, 1)
    (tmp_path / "username").write_text("meter\n")
    (tmp_path / "password").write_text("secret\n")
    broker = Broker(HOST, port, tls=False)
    async with running_mosquitto(tmp_path, port, await passwords(tmp_path)):
        with pytest.raises(BrokerError, match=str(port)):
            async with connected(broker, BrokerAccess(), "nobody"):
                pass
        async with connected(broker, BrokerAccess(tmp_path, HOST), "meter") as connection:
            await connection.publish("rematch/latency/edge", b"{}")
        (tmp_path / "password").write_text("wrong\n")
        with pytest.raises(BrokerError, match=str(port)):
            async with connected(broker, BrokerAccess(tmp_path, HOST), "meter"):
                pass
    with pytest.raises(BrokerError, match="only for elsewhere"):
        BrokerAccess(tmp_path, "elsewhere").login(broker)
    assert BrokerAccess(tmp_path, HOST).login(broker) == ("meter", "wrong")
    with pytest.raises(BrokerError, match="mqtts"):
        BrokerAccess(tmp_path, "example.org").login(Broker("example.org", 1883, tls=False))


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # paho's socket of a refused handshake
async def test_over_tls_with_a_password_the_meter_is_heard_and_a_stranger_s_certificate_is_refused(
    tmp_path: Path,
) -> None:
    (port,) = free_ports(HOST, 1)
    maker = CertificateMaker(Path(shutil.which("openssl") or "openssl"), tmp_path)
    ours, strange = await maker.authority("ca"), await maker.authority("strange-ca")
    server = await maker.signed("server", ours, [HOST])
    files = (f"cafile {ours.certificate}", f"certfile {server.certificate}", f"keyfile {server.key}")
    (tmp_path / "username").write_text("meter")
    (tmp_path / "password").write_text("secret")
    broker = Broker.parse(f"mqtts://{HOST}:{port}")
    access = BrokerAccess(tmp_path, HOST, ours.certificate)
    rig = Rig(make_settings(latency={"broker": str(broker)}), SystemClock())  # type: ignore[arg-type]
    app = make_pod("app", namespace="edge", node="far", labels={"rematch.io/latency": "target"})
    rig.sync(make_node("far"), app)
    messages = rig.instruments.latency_messages
    listening = LatencyListening(rig.state, lambda: rig.settings, SystemClock(), messages, access)
    async with (
        running_mosquitto(tmp_path, port, (*files, *await passwords(tmp_path))),
        echo_server(HOST, 0, SystemClock()) as (_, echo),
    ):
        with pytest.raises(BrokerError, match=r"(?i)certificate"):
            async with connected(broker, BrokerAccess(tmp_path, HOST, strange.certificate), "deceived"):
                pass
        gc.collect()  # here, not in another test
        with pytest.raises(BrokerError, match=str(port)):
            async with connected(broker, BrokerAccess(None, HOST, ours.certificate), "nobody"):
                pass
        discovery = Discovery(OnePod(app.uid), "edge", ("a=b",))  # type: ignore[arg-type]
        publishing = Publishing(broker, access, "meter", "rematch/latency", "edge")
        meter = LatencyClient(discovery, MeterRequests(echo), publishing, SystemClock())
        tasks = [asyncio.create_task(listening.run()), asyncio.create_task(meter.run(0.1))]
        try:
            await eventually(lambda: rig.state.latency.measured(app.uid) is not None, 20.0)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
    assert listening.problem == ""


async def passwords(folder: Path) -> tuple[str, ...]:
    """Lines of Mosquitto's configuration: only the user `meter` may come."""
    file = folder / "passwords"
    file.touch(mode=0o600)
    await (await asyncio.create_subprocess_exec("mosquitto_passwd", "-b", str(file), "meter", "secret")).wait()
    return ("allow_anonymous false", f"password_file {file}")
