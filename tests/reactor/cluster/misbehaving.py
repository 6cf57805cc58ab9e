"""An API server on loopback that misbehaves on request, in each way that a real one has been seen to."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from enum import Enum, auto

import msgspec
from aiohttp import web

from tests.reactor.cluster.truth import Truth, status_json


class Fault(Enum):
    """What the next request of its sort meets. Those below the line break a watch after its first lines."""

    EXPIRED = auto()
    THROTTLED = auto()
    BROKEN = auto()
    UNAVAILABLE = auto()
    UNAUTHORIZED = auto()
    RESET = auto()
    SILENT = auto()
    SLOW_FIRST_BYTE = auto()
    CUT_BODY = auto()
    # ---
    EXPIRED_IN_STREAM = auto()
    ERROR_IN_STREAM = auto()
    RESET_IN_STREAM = auto()
    SILENT_IN_STREAM = auto()
    CUT_LINE = auto()
    GARBAGE_LINE = auto()
    MALFORMED_OBJECT = auto()
    CLOSED_AT_ONCE = auto()


_REFUSALS = {
    Fault.EXPIRED: (410, "The provided continue parameter is too old"),
    Fault.THROTTLED: (429, "too many requests"),
    Fault.BROKEN: (500, "etcdserver: leader changed"),
    Fault.UNAVAILABLE: (503, "apiserver is shutting down"),
    Fault.UNAUTHORIZED: (401, "Unauthorized"),
}
SLOWNESS = 0.05


@dataclass
class Seen:
    method: str
    path: str
    query: dict[str, str]
    authorization: str | None
    body: bytes = b""


@dataclass
class MisbehavingServer:
    truth: Truth = field(default_factory=Truth)
    list_faults: deque[Fault] = field(default_factory=deque)
    watch_faults: deque[Fault] = field(default_factory=deque)
    token: str | None = None
    """When set, other tokens get 401."""
    close_after_lines: bool = False
    """Every watch ends as soon as it has sent all changes."""
    seen: list[Seen] = field(default_factory=list)
    url: str = ""

    def watches(self) -> list[Seen]:
        return [seen for seen in self.seen if seen.query.get("watch") == "true"]

    def lists(self) -> list[Seen]:
        return [seen for seen in self.seen if seen.method == "GET" and "watch" not in seen.query]

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[MisbehavingServer]:
        application = web.Application()
        application.router.add_get("/api/v1/pods", self._answer)
        runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.05)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        try:
            yield self
        finally:
            await runner.cleanup()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        authorization = request.headers.get("Authorization")
        self.seen.append(Seen(request.method, request.path, dict(request.query), authorization))
        if self.token is not None and authorization != f"Bearer {self.token}":
            return web.Response(status=401, body=status_json(401, "Unauthorized"))
        watching = request.query.get("watch") == "true"
        faults = self.watch_faults if watching else self.list_faults
        fault = faults.popleft() if faults else None
        if fault in _REFUSALS:
            return _refusal(fault)
        await _misbehave_before(request, fault)
        return await (self._watch(request, fault) if watching else self._list(request, fault))

    async def _list(self, request: web.Request, fault: Fault | None) -> web.StreamResponse:
        page = self.truth.page(int(request.query.get("continue", "0")), int(request.query["limit"]))
        if fault is Fault.CUT_BODY:
            page = page[: len(page) // 2]
        if fault is Fault.RESET_IN_STREAM:
            response = web.StreamResponse(headers={"Content-Length": str(len(page))})
            await response.prepare(request)
            await response.write(page[: len(page) // 2])
            _reset(request)
            return response
        return web.Response(body=page, content_type="application/json")

    async def _watch(self, request: web.Request, fault: Fault | None) -> web.StreamResponse:
        version = int(request.query["resourceVersion"])
        if version < self.truth.compacted:
            return _refusal(Fault.EXPIRED)
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        response.enable_chunked_encoding()
        await response.prepare(request)
        if fault is Fault.CLOSED_AT_ONCE:
            return response
        ends = asyncio.get_running_loop().time() + float(request.query["timeoutSeconds"])
        while asyncio.get_running_loop().time() < ends:
            moved = self.truth.moved
            for number, line in self.truth.lines_after(version):
                version = number
                await response.write(line + b"\n")
            if fault is not None and await _misbehave_within(request, response, fault):
                return response
            fault = None
            if self.close_after_lines:
                return response
            try:
                async with asyncio.timeout_at(ends):
                    await moved.wait()
            except TimeoutError:
                break
        return response


def _refusal(fault: Fault) -> web.Response:
    code, message = _REFUSALS[fault]
    headers = {"Retry-After": "7"} if fault is Fault.THROTTLED else {}
    return web.Response(status=code, headers=headers, body=status_json(code, message))


def _reset(request: web.Request) -> None:
    assert request.transport is not None
    request.transport.abort()


async def _misbehave_before(request: web.Request, fault: Fault | None) -> None:
    if fault is Fault.RESET:
        _reset(request)
        await asyncio.sleep(0)
    elif fault is Fault.SILENT:
        await asyncio.sleep(3600)
    elif fault is Fault.SLOW_FIRST_BYTE:
        await asyncio.sleep(SLOWNESS)


async def _misbehave_within(request: web.Request, response: web.StreamResponse, fault: Fault) -> bool:
    """True when the watch ends here."""
    log_tail = {
        Fault.EXPIRED_IN_STREAM: b'{"type":"ERROR","object":' + status_json(410, "too old resource version") + b"}\n",
        Fault.ERROR_IN_STREAM: b'{"type":"ERROR","object":' + status_json(500, "unable to decode an event") + b"}\n",
        Fault.CUT_LINE: b'{"type":"MODIFIED","object":{"metadata":{"na',
        Fault.GARBAGE_LINE: b"<html>502 Bad ClusterReader</html>\n",
    }
    if fault in log_tail:
        await response.write(log_tail[fault])
        return True
    if fault is Fault.RESET_IN_STREAM:
        _reset(request)
        return True
    if fault is Fault.SILENT_IN_STREAM:
        await asyncio.sleep(3600)
    if fault is Fault.MALFORMED_OBJECT:
        wrong = {"type": "ADDED", "object": {"metadata": {"name": "odd", "namespace": "default"}, "spec": 7}}
        await response.write(msgspec.json.encode(wrong) + b"\n")
    return False
