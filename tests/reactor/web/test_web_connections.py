"""Connections are limited in number and time, so that nobody takes the probes down by opening some."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import ClientSession
from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs
from yarl import URL

from reactor.web.connections import PROBE_LIMITS, ConnectionLimits
from reactor.web.server import build_app, listening, probe_app
from tests.reactor.web.small_view import HandClock, SmallHealth, SmallSource
from tests.support.clock import eventually

SHORT = ConnectionLimits(most=20, most_of_one_address=10, first_request=0.3, one_request=0.3)


@asynccontextmanager
async def idle_sockets(
    url: str, number: int, source: str = "127.0.0.1", send: bytes = b""
) -> AsyncIterator[list[socket.socket]]:
    """Opened in a thread: the server accepts them meanwhile."""
    opened: list[socket.socket] = []
    try:
        await asyncio.to_thread(_open, opened, URL(url).port or 0, number, source, send)
        yield opened
    finally:
        for connection in opened:
            connection.close()


def _open(opened: list[socket.socket], port: int, number: int, source: str, send: bytes) -> None:
    for _ in range(number):
        opened.append(socket.create_connection(("127.0.0.1", port), 5, source_address=(source, 0)))
        opened[-1].setblocking(False)
        if send:
            opened[-1].send(send)


def ended(connection: socket.socket) -> bool:
    try:
        return connection.recv(65536) == b""
    except BlockingIOError:
        return False
    except ConnectionError:
        return True


@asynccontextmanager
async def dashboard(limits: ConnectionLimits) -> AsyncIterator[str]:
    app = build_app(SmallSource(), SmallHealth(), CollectorRegistry(), HandClock())
    async with listening(app, "127.0.0.1", 0, limits) as url:
        yield url


async def status(url: str) -> int:
    async with ClientSession() as session, session.get(url) as response:
        return response.status


async def test_idle_sockets_of_the_dashboard_leave_the_probes_alone_and_log_one_line() -> None:
    probes = probe_app(SmallHealth(), CollectorRegistry())
    with capture_logs() as logs:
        async with (
            dashboard(ConnectionLimits()) as url,
            listening(probes, "127.0.0.1", 0, PROBE_LIMITS) as probe_url,
            idle_sockets(url, 235) as sockets,
        ):
            await eventually(lambda: sum(map(ended, sockets)) == 235 - 64)
            assert await status(f"{probe_url}/healthz") == 200
            assert await status(f"{probe_url}/metrics") == 200
            assert await status(f"{probe_url}/api/v1/overview") == 404
    assert [line["event"] for line in logs if "refused" in line["event"]] == ["connections refused: too many are open"]


async def test_one_address_cannot_take_all_connections() -> None:
    limits = ConnectionLimits(most=20, most_of_one_address=10)
    async with dashboard(limits) as url, idle_sockets(url, 15, "127.0.0.2") as sockets:
        await eventually(lambda: sum(map(ended, sockets)) == 5)
        assert await status(f"{url}/healthz") == 200
        async with idle_sockets(url, 15, "127.0.0.3") as others:
            await eventually(lambda: sum(map(ended, others)) == 5)


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: ",
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\nslow body",
    ],
    ids=["silent", "slow headers", "slow body"],
)
async def test_a_connection_that_waits_is_ended_and_its_place_is_free(sent: bytes) -> None:
    async with dashboard(SHORT) as url, idle_sockets(url, 10, send=sent) as sockets:
        await eventually(lambda: all(map(ended, sockets)), 10)
        assert await status(f"{url}/healthz") == 200


async def test_a_stream_is_not_ended() -> None:
    async with dashboard(SHORT) as url, ClientSession() as session:
        stream = await session.get(f"{url}/api/v1/stream")
        assert b"hello" in await stream.content.readline()
        await asyncio.sleep(0.5)
        assert not stream.content.at_eof()
        stream.close()
