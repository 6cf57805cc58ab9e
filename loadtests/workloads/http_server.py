"""The smallest HTTP/1.1 server that a probe and a load generator can talk to: one request per connection.

Written on asyncio's protocols because the lab serves hundreds of requests per second beside everything else.
"""

from __future__ import annotations

import asyncio
import socket

from loadtests.workloads.webapp import Request, WebApp

_OK = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 3\r\nConnection: close\r\n\r\nok\n"
_BAD = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
_MAX_HEAD = 65536


class AppServer:
    """Serves one app on one address."""

    def __init__(self, app: WebApp) -> None:
        self._app = app
        self._server: asyncio.Server | None = None
        self._open: set[_Connection] = set()

    async def listen(self, host: str, port: int) -> None:
        """In two steps, so that a pod that is deleted in between still knows the server that has to be closed."""
        loop, listening = asyncio.get_running_loop(), socket.create_server((host, port), backlog=512)
        self._server = await loop.create_server(
            lambda: _Connection(self._app, self._open), sock=listening, backlog=512, start_serving=False
        )
        await self._server.start_serving()

    def stop_accepting(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None

    def abort(self) -> None:
        """Close everything at once, as a killed process does."""
        self.stop_accepting()
        for connection in list(self._open):
            connection.abort()


class _Connection(asyncio.Protocol):
    def __init__(self, app: WebApp, peers: set[_Connection]) -> None:
        self._app = app
        self._peers = peers
        self._transport: asyncio.Transport | None = None
        self._head = b""
        self._request: Request | None = None
        self._answered = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._peers.add(self)

    def data_received(self, data: bytes) -> None:
        if self._request is not None or self._answered:
            return
        self._head += data
        if b"\r\n\r\n" in self._head:
            self._serve()
        elif len(self._head) > _MAX_HEAD:
            self._answer(_BAD)

    def connection_lost(self, _exc: Exception | None) -> None:
        self._peers.discard(self)
        if self._request is not None and not self._answered:
            self._app.abandon(self._request)

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def _serve(self) -> None:
        parts = self._head.split(b"\r\n", 1)[0].split(b" ")
        if len(parts) != 3:
            self._answer(_BAD)
            return
        self._request = self._app.accept(parts[1].decode("latin-1"), lambda: self._answer(_OK))
        if self._request is None:
            self._answer(b"")

    def _answer(self, response: bytes) -> None:
        self._answered = True
        if self._transport is not None:
            if response:
                self._transport.write(response)
            self._transport.close()
