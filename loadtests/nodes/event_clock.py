"""A node whose clock is wrong: a proxy before its kubelet's API connection that shifts the times of its Events.

The kernel has one clock, so the node itself cannot be given another one. What a controller sees of a node's clock are
the timestamps that its kubelet writes.
"""

from __future__ import annotations

import json
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web

_TIMES = ("firstTimestamp", "lastTimestamp", "eventTime")
_DROPPED = {"host", "authorization", "content-length", "transfer-encoding", "connection", "accept-encoding"}
_CONNECT_SECONDS = 10.0
_CALL_SECONDS = 30.0
_LARGEST = 16 << 20


def shifted(event: dict[str, Any], seconds: float) -> dict[str, Any]:
    moved = {name: _later(str(event[name]), seconds) for name in _TIMES if event.get(name)}
    return {**event, **moved}


@asynccontextmanager
async def wrong_clock(url: str, ca: Path, token: str, address: str, seconds: float) -> AsyncIterator[str]:
    """The URL of an API server that a kubelet with a clock `seconds` ahead would talk to."""
    trust = ssl.create_default_context(cafile=ca)
    headers = {"Authorization": f"Bearer {token}"}
    connector = aiohttp.TCPConnector(ssl=trust, limit=0)
    async with aiohttp.ClientSession(connector=connector, headers=headers, auto_decompress=False) as session:
        proxy = _Proxy(url, session, seconds)
        app = web.Application(client_max_size=_LARGEST)
        app.router.add_route("*", "/{path:.*}", proxy.handle)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.5)
        await runner.setup()
        try:
            site = web.TCPSite(runner, address, 0)
            await site.start()
            yield f"http://{address}:{runner.addresses[0][1]}"
        finally:
            await runner.cleanup()


class _Proxy:
    def __init__(self, url: str, session: aiohttp.ClientSession, seconds: float) -> None:
        self._url = url
        self._session = session
        self._seconds = seconds

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        if body and "/events" in request.path:
            body = json.dumps(shifted(json.loads(body), self._seconds)).encode()
        headers = {name: value for name, value in request.headers.items() if name.lower() not in _DROPPED}
        url, deadline = f"{self._url}{request.path_qs}", deadline_of(request.query)
        async with self._session.request(
            request.method, url, data=body or None, headers=headers, timeout=deadline
        ) as answer:
            return await _forward(request, answer)


def deadline_of(query: Mapping[str, str]) -> aiohttp.ClientTimeout:
    """Only a watch has no end."""
    is_watch = query.get("watch") in ("1", "true")
    return aiohttp.ClientTimeout(total=None if is_watch else _CALL_SECONDS, sock_connect=_CONNECT_SECONDS)


async def _forward(request: web.Request, answer: aiohttp.ClientResponse) -> web.StreamResponse:
    """Piece by piece: a watch has no end."""
    kept = {name: value for name, value in answer.headers.items() if name.lower() not in _DROPPED}
    response = web.StreamResponse(status=answer.status, headers=kept)
    with suppress(aiohttp.ClientConnectionResetError):  # a kubelet that has left needs no answer
        await response.prepare(request)
        async for piece in answer.content.iter_any():
            await response.write(piece)
        await response.write_eof()
    return response


def _later(text: str, seconds: float) -> str:
    moment = datetime.fromisoformat(text) + timedelta(seconds=seconds)
    exact = "%Y-%m-%dT%H:%M:%S.%fZ" if "." in text else "%Y-%m-%dT%H:%M:%SZ"
    return moment.strftime(exact)
