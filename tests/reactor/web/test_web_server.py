from __future__ import annotations

import asyncio
import socket

import pytest
from aiohttp import ClientSession
from prometheus_client import CollectorRegistry

from reactor.errors import InputError
from reactor.web.server import build_app, is_loopback, listening
from tests.reactor.web.small_view import HandClock, SmallHealth, SmallSource


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.53", "::1", "localhost"])
def test_addresses_of_this_machine_alone_are_loopback(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.7", "example.test", ""])
def test_addresses_reachable_from_outside_are_not_loopback(host: str) -> None:
    assert not is_loopback(host)


async def test_a_server_with_an_open_stream_ends_in_time(
    source: SmallSource, health: SmallHealth, clock: HandClock
) -> None:
    app = build_app(source, health, CollectorRegistry(), clock)
    loop = asyncio.get_running_loop()
    async with ClientSession() as session:
        async with listening(app, "127.0.0.1", 0) as url:
            stream = await session.get(f"{url}/api/v1/stream")
            assert b"hello" in await stream.content.readline()
            started = loop.time()
        assert loop.time() - started < 2.0
        stream.close()


async def test_bound_to_all_addresses_any_name_is_answered(
    source: SmallSource, health: SmallHealth, clock: HandClock
) -> None:
    app = build_app(source, health, CollectorRegistry(), clock, names=None)
    async with ClientSession() as session, listening(app, "127.0.0.1", 0) as url:
        answer = await session.get(f"{url}/healthz", headers={"Host": "rematch.rematch.svc"})
        assert answer.status == 200


async def test_a_taken_port_is_one_clear_line(source: SmallSource, health: SmallHealth, clock: HandClock) -> None:
    app = build_app(source, health, CollectorRegistry(), clock)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(InputError, match=f"cannot listen on 127.0.0.1:{port}: .*choose another port"):
            async with listening(app, "127.0.0.1", port):
                pytest.fail("two servers at one address")
