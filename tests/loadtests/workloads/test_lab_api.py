"""The lab's API client against a server that misbehaves."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from aiohttp import web

from loadtests.workloads.api import Changed, LabApi, Listed
from reactor.clock import SystemClock
from reactor.errors import ClusterError, Conflict, NotFound, Refused, Unreachable

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def item(name: str, version: int) -> dict[str, Any]:
    return {"metadata": {"name": name, "resourceVersion": str(version)}}


def event(kind: str, obj: dict[str, Any]) -> bytes:
    return json.dumps({"type": kind, "object": obj}).encode() + b"\n"


class Story:
    """Lists are answered from `listed`; each watch gets the next of `watches`, cut off at its end."""

    def __init__(self) -> None:
        self.listed: list[dict[str, Any]] = []
        self.watches: list[list[bytes]] = []
        self.asked: list[str] = []
        self.status = 200
        self.url = ""

    async def answer(self, request: web.Request) -> web.StreamResponse:
        if "watch" not in request.query:
            self.asked.append("list")
            return web.json_response({"metadata": {"resourceVersion": "10"}, "items": self.listed}, status=self.status)
        self.asked.append(request.query["resourceVersion"])
        response = web.StreamResponse()
        await response.prepare(request)
        if not self.watches:
            await asyncio.sleep(30)
        for chunk in self.watches.pop(0):
            await response.write(chunk)
        return response


@pytest.fixture
async def story() -> AsyncIterator[Story]:
    story = Story()
    app = web.Application()
    app.router.add_route("*", "/things", story.answer)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    story.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield story
    await runner.cleanup()


@pytest.fixture
async def client(story: Story) -> AsyncIterator[LabApi]:
    api = LabApi(story.url, SystemClock(), timeout=2)
    yield api
    await api.close()


async def heard(client: LabApi, count: int) -> list[Listed | Changed]:
    found: list[Listed | Changed] = []
    enough = asyncio.Event()

    def see(change: Listed | Changed) -> None:
        found.append(change)
        if len(found) >= count:
            enough.set()

    following = asyncio.create_task(client.follow("/things", {}, see))
    async with asyncio.timeout(10):
        await enough.wait()
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)
    return found


async def test_a_cut_watch_goes_on_where_it_was(story: Story, client: LabApi) -> None:
    story.listed = [item("a", 3)]
    story.watches = [
        [event("ADDED", item("b", 11)), event("BOOKMARK", item("", 15))],
        [event("DELETED", item("b", 16))],
    ]
    found = await heard(client, 3)
    assert found == [Listed((item("a", 3),)), Changed("ADDED", item("b", 11)), Changed("DELETED", item("b", 16))]
    assert story.asked[:3] == ["list", "10", "15"]


async def test_an_expired_watch_lists_again(story: Story, client: LabApi) -> None:
    gone = {"kind": "Status", "code": 410, "message": "too old resource version"}
    story.watches = [[event("ERROR", gone)], [event("ADDED", item("b", 11))]]
    found = await heard(client, 3)
    assert [type(change) for change in found] == [Listed, Listed, Changed]
    assert story.asked[:4] == ["list", "10", "list", "10"]


async def test_a_torn_line_is_asked_for_again(story: Story, client: LabApi) -> None:
    whole = event("ADDED", item("b", 11))
    story.watches = [[whole[:20], b"\n"], [whole[:20], whole[20:]]]
    found = await heard(client, 2)
    assert found[1] == Changed("ADDED", item("b", 11))
    assert story.asked[:3] == ["list", "10", "10"]


@pytest.mark.parametrize(
    ("status", "error"), [(404, NotFound), (409, Conflict), (403, Refused), (500, Unreachable), (429, Unreachable)]
)
async def test_statuses_are_typed(story: Story, client: LabApi, status: int, error: type[ClusterError]) -> None:
    story.status = status
    with pytest.raises(error):
        await client.get("/things")


async def test_nobody_there_is_unreachable() -> None:
    api = LabApi("http://127.0.0.1:9", SystemClock(), timeout=1)
    with pytest.raises(Unreachable):
        await api.get("/things")
    await api.close()
