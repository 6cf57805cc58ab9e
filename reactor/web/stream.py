"""Server-sent events: they say that something changed. The page then fetches what it shows."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import msgspec
from aiohttp import web
from msgspec import Struct

from reactor.clock import Clock
from reactor.web.view import ViewSource


class Pace(Struct, frozen=True):
    heartbeat: float = 15.0
    """Seconds between heartbeats, so that both ends notice a dead connection."""
    interval: float = 0.5
    """Seconds; changes that come faster are sent as one."""
    most_streams: int = 64
    write_deadline: float = 10.0
    """Seconds; a reader that takes nothing for so long is disconnected."""


class ChangeStream:
    """One handler for all viewers. On shutdown every open stream ends at once."""

    def __init__(self, source: ViewSource, clock: Clock, pace: Pace) -> None:
        self._source = source
        self._clock = clock
        self._pace = pace
        self._open: set[asyncio.Task[None]] = set()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-store"})
        if request.method == "HEAD":
            await response.prepare(request)
            return response
        if len(self._open) >= self._pace.most_streams:
            raise web.HTTPServiceUnavailable(
                headers={"Retry-After": "10"}, text=f"all {self._pace.most_streams} live connections are taken"
            )
        await response.prepare(request)
        task = asyncio.create_task(self._follow(response))
        self._open.add(task)
        try:
            await task
        except (ConnectionError, TimeoutError):
            pass
        except asyncio.CancelledError:
            # close() cancels only the task, and the response ends normally. Otherwise this handler is cancelled.
            handler = asyncio.current_task()
            if handler is not None and handler.cancelling():
                raise
        finally:
            self._open.discard(task)
        return response

    async def close(self, _app: web.Application) -> None:
        for task in tuple(self._open):
            task.cancel()

    async def _follow(self, response: web.StreamResponse) -> None:
        version = await self._source.wait_for_change(-1)
        await self._send(response, "hello", {"version": version, "heartbeat": self._pace.heartbeat})
        change = asyncio.create_task(self._source.wait_for_change(version))
        try:
            while True:
                if await self._arrives(change):
                    version = change.result()
                    await self._send(response, "change", {"version": version})
                    await self._clock.sleep(self._pace.interval)
                    change = asyncio.create_task(self._source.wait_for_change(version))
                else:
                    await self._send(response, "heartbeat", {"version": version})
        finally:
            change.cancel()

    async def _arrives(self, change: asyncio.Task[int]) -> bool:
        """Whether the change comes before the next heartbeat is due."""
        beat = asyncio.create_task(self._clock.sleep(self._pace.heartbeat))
        try:
            await asyncio.wait((change, beat), return_when=asyncio.FIRST_COMPLETED)
        finally:
            beat.cancel()
            with suppress(asyncio.CancelledError):
                await beat
        return change.done()

    async def _send(self, response: web.StreamResponse, event: str, data: dict[str, float]) -> None:
        async with asyncio.timeout(self._pace.write_deadline):
            await response.write(b"event: %b\ndata: %b\n\n" % (event.encode(), msgspec.json.encode(data)))
