from __future__ import annotations

import asyncio
import json

from aiohttp import ClientResponse

from tests.reactor.web.small_view import Client, HandClock, SmallSource


async def heard(answer: ClientResponse) -> tuple[str, dict[str, float]]:
    """The next event of a stream: its name and data."""
    block = await asyncio.wait_for(answer.content.readuntil(b"\n\n"), 5)
    event, data = block.decode().strip().split("\n")
    return event.removeprefix("event: "), json.loads(data.removeprefix("data: "))


async def test_a_stream_sends_hello_and_then_changes(client: Client, source: SmallSource, clock: HandClock) -> None:
    async with client.get("/api/v1/stream") as answer:
        assert answer.content_type == "text/event-stream"
        assert await heard(answer) == ("hello", {"version": 1, "heartbeat": 15.0})
        source.change()
        assert await heard(answer) == ("change", {"version": 2})


async def test_many_changes_in_one_interval_are_sent_as_one(
    client: Client, source: SmallSource, clock: HandClock
) -> None:
    async with client.get("/api/v1/stream") as answer:
        await heard(answer)
        source.change()
        assert (await heard(answer))[1] == {"version": 2}
        for _ in range(20):
            source.change()
        await clock.advance(0.5)
        assert await heard(answer) == ("change", {"version": 22})


async def test_a_silent_stream_sends_heartbeats(client: Client, source: SmallSource, clock: HandClock) -> None:
    async with client.get("/api/v1/stream") as answer:
        await heard(answer)
        await clock.advance(15.0)
        assert await heard(answer) == ("heartbeat", {"version": 1})
        await clock.advance(15.0)
        assert await heard(answer) == ("heartbeat", {"version": 1})
        source.change()
        assert await heard(answer) == ("change", {"version": 2})


async def test_streams_are_bounded_and_a_closed_one_makes_room(client: Client) -> None:
    first, second = await client.get("/api/v1/stream"), await client.get("/api/v1/stream")
    refused = await client.get("/api/v1/stream")
    assert refused.status == 503
    assert refused.headers["Retry-After"] == "10"
    assert "2 live connections" in (await refused.json())["error"]["message"]
    first.close()
    third = refused
    async with asyncio.timeout(5):
        while third.status != 200:
            third = await client.get("/api/v1/stream")
    assert (await heard(third))[0] == "hello"
    second.close()
    third.close()


async def test_shutdown_ends_open_streams_at_once(client: Client) -> None:
    answer = await client.get("/api/v1/stream")
    await heard(answer)
    async with asyncio.timeout(2):
        await client.server.close()
        assert await answer.content.read() == b""
