"""The app over real HTTP on loopback, on the real CPU model."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

import pytest

from loadtests.workloads.app_spec import AppSpec
from loadtests.workloads.http_client import Answer, Ending, http_get
from loadtests.workloads.http_server import AppServer
from loadtests.workloads.live_cpu import LiveCpu
from loadtests.workloads.webapp import WebApp

HOST, PORT = "127.16.200.7", 18080


@pytest.fixture
async def cpu() -> AsyncIterator[LiveCpu]:
    cpu = LiveCpu(1)
    cpu.add_pod("pod", 1)
    yield cpu
    cpu.close()


async def serve(cpu: LiveCpu, spec: AppSpec) -> AppServer:
    server = AppServer(WebApp(spec, cpu, "pod", seed=1))
    await server.listen(HOST, PORT)
    return server


async def test_an_answer_takes_the_work_it_needs(cpu: LiveCpu) -> None:
    server = await serve(cpu, AppSpec(work_ms=40, work_spread=0))
    begin = time.monotonic()
    assert await http_get(HOST, PORT, "/", 2) == Answer(Ending.ANSWERED, 200)
    assert 0.039 <= time.monotonic() - begin < 0.5
    assert cpu.usage("pod").seconds == pytest.approx(0.04, abs=0.001)
    server.abort()


async def test_three_requests_on_one_core_take_three_times_as_long(cpu: LiveCpu) -> None:
    server = await serve(cpu, AppSpec(work_ms=30, work_spread=0))
    begin = time.monotonic()
    answers = await asyncio.gather(*(http_get(HOST, PORT, "/", 2) for _ in range(3)))
    assert all(answer.ok for answer in answers)
    assert time.monotonic() - begin >= 0.088
    server.abort()


async def test_a_full_app_closes_at_once_and_a_slow_one_times_out(cpu: LiveCpu) -> None:
    server = await serve(cpu, AppSpec(work_ms=10_000, workers=1, backlog=0))
    slow = asyncio.create_task(http_get(HOST, PORT, "/", 0.1))
    await asyncio.sleep(0.02)
    assert (await http_get(HOST, PORT, "/healthz", 2)).ending is Ending.CLOSED
    assert (await slow).ending is Ending.TIMEOUT
    server.abort()


async def test_nobody_listens_after_the_end(cpu: LiveCpu) -> None:
    server = await serve(cpu, AppSpec())
    server.abort()
    assert (await http_get(HOST, PORT, "/", 1)).ending is Ending.REFUSED


async def test_an_aborted_app_drops_its_connections(cpu: LiveCpu) -> None:
    server = await serve(cpu, AppSpec(work_ms=10_000))
    asked = asyncio.create_task(http_get(HOST, PORT, "/", 5))
    await asyncio.sleep(0.05)
    server.abort()
    assert (await asked).ending in (Ending.CLOSED, Ending.RESET)


@pytest.mark.parametrize("head", [b"nonsense\r\n\r\n", b"x" * 70_000])
async def test_what_is_not_http_gets_a_400(cpu: LiveCpu, head: bytes) -> None:
    server = await serve(cpu, AppSpec())
    reader, writer = await asyncio.open_connection(HOST, PORT)
    writer.write(head)
    assert (await reader.read(20)).startswith(b"HTTP/1.1 400")
    writer.close()
    server.abort()


@pytest.mark.parametrize("steps", range(1, 6))
async def test_a_start_that_is_cut_short_leaves_no_port_open(steps: int, cpu: LiveCpu) -> None:
    server = AppServer(WebApp(AppSpec(), cpu, "pod", seed=1))
    starting = asyncio.create_task(server.listen(HOST, PORT))
    for _ in range(steps):
        await asyncio.sleep(0)
    starting.cancel()
    await asyncio.wait([starting])
    server.abort()
    again = await serve(cpu, AppSpec(work_ms=1))
    assert (await http_get(HOST, PORT, "/", 2)).ok
    again.abort()
