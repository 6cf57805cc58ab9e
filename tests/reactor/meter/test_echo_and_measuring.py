"""The echo server answers requests only, and the client measures what is answered."""

from __future__ import annotations

import asyncio
import socket

import pytest
from aiohttp import web

from reactor.clock import SystemClock
from reactor.errors import InputError
from reactor.meter.echo import ANSWER, LONGEST, REQUEST, EchoServer, echo_server
from reactor.meter.measuring import MeterMode, MeterRequests, RoundTrips, measure
from tests.support.clock import VirtualClock, eventually

HOST = "127.0.0.1"


async def test_requests_are_answered_and_garbage_is_ignored() -> None:
    async with echo_server(HOST, 0, SystemClock()) as (server, port):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as garbage:
            for data in (b"", b"x" * 2000, ANSWER + b"1", REQUEST + b"x" * LONGEST):
                garbage.sendto(data, (HOST, port))
            await eventually(lambda: server.ignored == 4, 5.0)
        found = await measure(HOST, MeterRequests(port, number=5), SystemClock())
    assert server.answered == 5
    assert found.loss == 0.0
    assert found.mean is not None
    assert 0 < found.mean < 1


class _Sent(asyncio.DatagramTransport):
    def __init__(self) -> None:
        super().__init__()
        self.data: list[bytes] = []

    def sendto(self, data: object, addr: object = None) -> None:
        assert isinstance(data, bytes)
        self.data.append(data)


def test_a_flood_is_answered_up_to_the_limit_of_a_second() -> None:
    clock, sent = VirtualClock(), _Sent()
    server = EchoServer(clock, most_per_second=3)
    server.connection_made(sent)
    for _ in range(10):
        server.datagram_received(REQUEST + b"1", (HOST, 1))
    assert sent.data == [ANSWER + b"1"] * 3
    clock.set(clock.now() + 1)
    server.datagram_received(REQUEST + b"2", (HOST, 1))
    assert (server.answered, server.ignored) == (4, 7)


async def test_a_taken_port_is_an_error_that_names_it() -> None:
    async with echo_server(HOST, 0, SystemClock()) as (_, port):
        with pytest.raises(InputError, match=str(port)):
            async with echo_server(HOST, port, SystemClock()):
                pass


async def test_what_nobody_answers_is_lost() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind((HOST, 0))
        wanted = MeterRequests(silent.getsockname()[1], number=2, timeout=0.05)
        found = await measure(HOST, wanted, SystemClock())
    assert (found.mean, found.jitter, found.loss) == (None, None, 1.0)


async def test_http_measures_real_requests_and_a_server_error_is_no_answer() -> None:
    answers = iter([200, 503, 404, 200])

    async def handle(_request: web.Request) -> web.Response:
        return web.Response(status=next(answers))

    app = web.Application()
    app.router.add_get("/app", handle)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, HOST, 0).start()
    try:
        wanted = MeterRequests(runner.addresses[0][1], 4, 2.0, MeterMode.HTTP, "/app")
        found = await measure(HOST, wanted, SystemClock())
    finally:
        await runner.cleanup()
    assert (len(found.answered), found.loss) == (3, 0.25)


def test_jitter_is_the_mean_difference_of_neighbours() -> None:
    trips = RoundTrips((0.1, 0.3, 0.2), 4)
    assert trips.mean == pytest.approx(0.2)
    assert trips.jitter == pytest.approx(0.15)
    assert trips.loss == 0.25
