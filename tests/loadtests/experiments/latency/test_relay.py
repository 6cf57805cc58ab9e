"""The delayed way to a worker: datagrams and connections, what is lost, and which endpoints answer."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from random import Random
from typing import Any

from loadtests.experiments.latency.endpoints import Endpoint, ServiceEndpoints
from loadtests.experiments.latency.relay import NodeRelay, Way
from loadtests.tools.ports import free_ports
from loadtests.workloads.api import Changed, Listed
from loadtests.workloads.http_client import Ending, http_get
from reactor.clock import SystemClock
from reactor.meter.echo import echo_server
from reactor.meter.measuring import MeterRequests, measure

HOST = "127.0.0.1"
CLOCK = SystemClock()


@asynccontextmanager
async def web_server() -> AsyncIterator[int]:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(answer, HOST, 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


@asynccontextmanager
async def relay(way: Way, udp: int = 0, tcp: int = 0) -> AsyncIterator[tuple[int, int]]:
    def endpoints(port: int) -> Sequence[Endpoint]:
        return [Endpoint("near", HOST, port)] if port else []

    made = NodeRelay(HOST, way, lambda: endpoints(udp), lambda: endpoints(tcp))
    ports = free_ports(HOST, 2)
    await made.start(*ports)
    try:
        yield ports[0], ports[1]
    finally:
        await made.stop()


async def test_a_round_trip_takes_the_delay_there_and_back_by_datagram_and_by_request() -> None:
    async with (
        echo_server(HOST, 0, CLOCK) as (_, echo),
        web_server() as web,
        relay(Way(0.05, 0.0, Random(1)), echo, web) as (udp, tcp),
    ):
        trips = await measure(HOST, MeterRequests(udp, number=2), CLOCK)
        assert trips.loss == 0
        assert all(0.1 <= each < 1 for each in trips.answered)
        began = time.monotonic()
        assert (await http_get(HOST, tcp, "/", 2)).ok
        assert 0.1 <= time.monotonic() - began < 1


async def test_some_datagrams_are_lost_and_requests_only_take_longer() -> None:
    async with (
        echo_server(HOST, 0, CLOCK) as (_, echo),
        web_server() as web,
        relay(Way(0.001, 0.2, Random(1)), echo, web) as (udp, tcp),
    ):
        trips = await measure(HOST, MeterRequests(udp, number=60, timeout=0.05), CLOCK)
        assert 0.15 < trips.loss < 0.6, "0.36 is expected: there or back"
        answers = await asyncio.gather(*(http_get(HOST, tcp, "/", 5) for _ in range(20)))
        assert all(each.ok for each in answers)


async def test_a_worker_without_an_endpoint_answers_nothing() -> None:
    async with relay(Way(0.001, 0.0, Random(1))) as (udp, tcp):
        assert (await measure(HOST, MeterRequests(udp, number=1, timeout=0.1), CLOCK)).loss == 1
        assert (await http_get(HOST, tcp, "/", 2)).ending is Ending.CLOSED


def test_a_pod_that_ends_is_asked_only_while_no_ready_one_is_on_its_node() -> None:
    def endpoint(host: str, node: str, *, ready: bool) -> dict[str, Any]:
        return {"addresses": [host], "nodeName": node, "conditions": {"ready": ready, "serving": True}}

    slice_ = {
        "metadata": {"name": "app-1", "labels": {"kubernetes.io/service-name": "app"}},
        "ports": [{"port": 8080}],
        "endpoints": [endpoint("10.0.0.1", "far", ready=False), endpoint("10.0.0.2", "near", ready=True)],
    }
    known = ServiceEndpoints(None, "edge")  # type: ignore[arg-type]
    known._heard(Listed((slice_,)))
    assert [each.host for each in known.ready("app")] == ["10.0.0.2"]
    assert [each.host for each in known.on_node("app", "far")] == ["10.0.0.1"]
    assert not known.ready("latency")
    more = {**slice_, "endpoints": [*slice_["endpoints"], endpoint("10.0.0.3", "far", ready=True)]}
    known._heard(Changed("MODIFIED", more))
    assert [each.host for each in known.on_node("app", "far")] == ["10.0.0.3"]
    known._heard(Changed("DELETED", more))
    assert not known.ready("app")
