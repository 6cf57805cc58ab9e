"""Stands between one controller and the API server: passes everything on, except where a fault is armed.

Plain HTTP on loopback towards the controller, TLS towards the API server. Watches are streamed. The controller's own
credentials are passed on, so the API server sees and audits who asked.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import msgspec
from aiohttp import web

from loadtests.chaos.faults import AT_REQUESTS, IN_WATCHES, INSTEAD, KILLS, REFUSALS, Fault, FaultKind
from loadtests.chaos.requests import WRITES, Step, step_of
from loadtests.chaos.timing import LATE_SECONDS
from loadtests.chaos.write_kinds import WriteKind
from reactor.clock import Clock

SLOW_SECONDS = 2.0
_LONGEST_BODY = 64 * 2**20
_HOP = frozenset({"host", "connection", "content-length", "transfer-encoding", "accept-encoding", "keep-alive"})
_WORDS: Mapping[FaultKind, tuple[int, str]] = {
    FaultKind.CONFLICT: (409, "Conflict"),
    FaultKind.EXPIRED: (410, "Expired"),
    FaultKind.THROTTLED: (429, "TooManyRequests"),
    FaultKind.THROTTLED_FOR: (429, "TooManyRequests"),
    FaultKind.ERROR: (500, "InternalError"),
    FaultKind.UNAVAILABLE: (503, "ServiceUnavailable"),
}


@dataclass(frozen=True, slots=True)
class Hit:
    """A fault that happened, and to which request."""

    fault: Fault
    step: Step
    request: str
    at: float
    write: WriteKind | None = None


@dataclass(slots=True)
class Traffic:
    """By step: requests, and bytes in both directions."""

    requests: Counter[Step] = field(default_factory=Counter)
    bytes: Counter[Step] = field(default_factory=Counter)

    def add(self, step: Step, size: int, requests: int = 0) -> None:
        self.requests[step] += requests
        self.bytes[step] += size


@dataclass(frozen=True, slots=True)
class _Armed:
    fault: Fault
    since: float

    def matches(self, step: Step, write: WriteKind | None, now: float) -> bool:
        if self.fault.write is not None:
            return write is self.fault.write
        waited = now - self.since
        if step in self.fault.steps or not self.fault.steps & WRITES:
            return step in self.fault.steps
        return waited > INSTEAD.get(step, float("inf"))


class ArmedFaults:
    """Shared by the proxies of all controllers: who acts is hit, and that is the leader."""

    def __init__(self, clock: Clock) -> None:
        self.hits: list[Hit] = []
        self._clock = clock
        self._armed: list[_Armed] = []

    @property
    def waiting(self) -> bool:
        return bool(self._armed)

    def arm(self, fault: Fault) -> None:
        self._armed.append(_Armed(fault, self._clock.monotonic()))

    def disarm(self) -> None:
        """What did not happen so far never will."""
        self._armed.clear()

    @property
    def awaited(self) -> frozenset[WriteKind]:
        """Writes that kills wait for."""
        return frozenset(armed.fault.write for armed in self._armed if armed.fault.write is not None)

    def take(
        self, step: Step, request: str, kinds: Collection[FaultKind], write: WriteKind | None = None
    ) -> Fault | None:
        """The first armed fault of these kinds for this step; from now on it has happened."""
        now = self._clock.monotonic()
        for armed in self._armed:
            if armed.fault.kind in kinds and armed.matches(step, write, now):
                self._armed.remove(armed)
                self.hits.append(Hit(armed.fault, step, request, self._clock.now(), write))
                return armed.fault
        return None


class FaultProxy:
    def __init__(self, clock: Clock, upstream: str, ca: Path | None, faults: ArmedFaults) -> None:
        self.traffic = Traffic()
        self.kill: Callable[[], None] = lambda: None
        """kill -9 of the controller behind this proxy."""
        self.write_kind: Callable[[Step, str, bytes], WriteKind | None] = lambda _step, _path, _body: None
        self.last_write = float("-inf")
        """When the controller last wrote: the one with the latest is the leader."""
        self._clock = clock
        self._upstream = upstream
        self._trust = ssl.create_default_context(cafile=ca) if ca is not None else True
        self._faults = faults
        self._late: set[asyncio.Task[web.StreamResponse]] = set()
        self._connected = asyncio.Event()
        self._connected.set()
        self._session: aiohttp.ClientSession | None = None
        self._port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def cut_off(self) -> None:
        """Nothing passes in either direction, and nobody is told: as when packets are dropped."""
        self._connected.clear()

    def connect(self) -> None:
        self._connected.set()

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        app = web.Application(client_max_size=_LONGEST_BODY)
        app.router.add_route("*", "/{path:.*}", self._handle)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.5, handler_cancellation=True)
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=5.0)
        connector = aiohttp.TCPConnector(limit=0, ssl=self._trust)
        async with aiohttp.ClientSession(self._upstream, connector=connector, timeout=timeout) as session:
            self._session = session
            await runner.setup()
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            self._port = runner.addresses[0][1]
            try:
                yield
            finally:
                for late in self._late:
                    late.cancel()
                await runner.cleanup()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        watch = request.query.get("watch") in ("true", "1")
        step = step_of(request.method, request.path, watch=watch)
        self.traffic.add(step, len(body), requests=1)
        if step in WRITES:
            self.last_write = self._clock.now()
        await self._connected.wait()
        request_line = f"{request.method} {request.path}"
        write = self.write_kind(step, request.path, body)
        fault = self._faults.take(step, request_line, AT_REQUESTS - IN_WATCHES if watch else AT_REQUESTS, write)
        try:
            if fault is not None:
                return await self._spoil(fault, request, step, body)
            return await self._stream(request) if watch else await self._pass_on(request, step, body)
        except (aiohttp.ClientError, ConnectionError):
            return _abort(request)

    async def _spoil(self, fault: Fault, request: web.Request, step: Step, body: bytes) -> web.StreamResponse:
        kind = fault.kind
        if kind in REFUSALS:
            return _refusal(kind)
        if kind is FaultKind.SLOW:
            await asyncio.sleep(SLOW_SECONDS)
            return await self._pass_on(request, step, body)
        if kind is FaultKind.LATE_REQUEST:
            return await self._pass_on_late(request, step, body)
        if kind in (FaultKind.LOST_REQUEST, FaultKind.KILL_BEFORE):
            if kind in KILLS:
                self.kill()
            return _abort(request)
        answer = await self._pass_on(request, step, body)
        if kind is FaultKind.HANGING_ANSWER:
            await asyncio.sleep(3600)  # until the client gives up, which cancels this
        if kind is FaultKind.KILL_ANSWERED:
            await answer.prepare(request)
            await answer.write_eof()
        if kind in KILLS:
            self.kill()
        return _abort(request)

    async def _pass_on_late(self, request: web.Request, step: Step, body: bytes) -> web.StreamResponse:
        async def later() -> web.StreamResponse:
            await asyncio.sleep(LATE_SECONDS)
            return await self._pass_on(request, step, body)

        task = asyncio.create_task(later())
        self._late.add(task)
        task.add_done_callback(self._late_done)
        return await asyncio.shield(task)

    def _late_done(self, task: asyncio.Task[web.StreamResponse]) -> None:
        self._late.discard(task)
        if not task.cancelled():
            task.exception()  # the sender may be gone: nobody else asks for it

    async def _pass_on(self, request: web.Request, step: Step, body: bytes) -> web.StreamResponse:
        async with self._send(request, body) as answer:
            data = await answer.read()
        await self._connected.wait()
        self.traffic.add(step, len(data))
        kept = {name: value for name, value in answer.headers.items() if name.lower() not in _HOP}
        return web.Response(status=answer.status, body=data, headers=kept)

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        async with self._send(request, b"") as answer:
            kind = answer.headers.get("Content-Type", "application/json")
            response = web.StreamResponse(status=answer.status, headers={"Content-Type": kind})
            await response.prepare(request)
            async for chunk in answer.content.iter_any():
                await self._connected.wait()
                fault = self._faults.take(Step.WATCH, f"GET {request.path}", IN_WATCHES)
                if fault is not None:
                    await response.write(_spoilt(fault.kind, chunk))
                    return _abort(request)
                self.traffic.add(Step.WATCH, len(chunk))
                await response.write(chunk)
            await response.write_eof()
            return response

    def _send(self, request: web.Request, body: bytes) -> aiohttp.client._RequestContextManager:
        assert self._session is not None, "the proxy serves only within its block"
        headers = {name: value for name, value in request.headers.items() if name.lower() not in _HOP}
        headers["Accept-Encoding"] = "identity"
        # A URL and not its text: selectors and continue tokens arrive as they were sent.
        return self._session.request(request.method, request.rel_url, headers=headers, data=body or None)


def _refusal(kind: FaultKind) -> web.Response:
    code, _ = _WORDS[kind]
    headers = {"Retry-After": "1"} if kind is FaultKind.THROTTLED_FOR else {}
    return web.Response(status=code, body=_status(kind), content_type="application/json", headers=headers)


def _status(kind: FaultKind) -> bytes:
    code, reason = _WORDS[kind]
    words = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": code, "reason": reason}
    return msgspec.json.encode({**words, "message": f"injected {kind.value}"})


def _spoilt(kind: FaultKind, chunk: bytes) -> bytes:
    """The part of a watch that still arrives: an object without its end, or that the version is too old."""
    if kind is FaultKind.CUT_WATCH:
        return chunk[:-2] if len(chunk) > 2 else chunk
    return b'{"type":"ERROR","object":' + _status(kind) + b"}\n"


def _abort(request: web.Request) -> web.Response:
    """The connection is reset; the response is never seen."""
    if request.transport is not None:
        with suppress(RuntimeError):
            request.transport.abort()
    return web.Response(status=502)
