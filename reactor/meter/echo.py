"""`rematch latency-server`: a UDP echo server.

It answers requests only, and an answer is no request: two servers cannot send each other datagrams for ever. An answer
is as long as its request, so nothing is amplified.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import structlog

from reactor.clock import Clock
from reactor.errors import InputError

log = structlog.get_logger(__name__)

REQUEST, ANSWER = b"rematch?", b"rematch!"
LONGEST = 256
"""Bytes of a datagram that is answered."""
MOST_PER_SECOND = 5000


class EchoServer(asyncio.DatagramProtocol):
    def __init__(self, clock: Clock, most_per_second: int = MOST_PER_SECOND) -> None:
        self._clock = clock
        self._most = most_per_second
        self._second = 0
        self._in_second = 0
        self._transport: asyncio.DatagramTransport | None = None
        self.answered = 0
        self.ignored = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.DatagramTransport, transport)  # asyncio's own is no instance of it

    def datagram_received(self, data: bytes, addr: tuple[str | Any, int]) -> None:
        second = int(self._clock.monotonic())
        if second != self._second:
            self._second, self._in_second = second, 0
        self._in_second += 1
        if self._transport is None or not _is_request(data) or self._in_second > self._most:
            self.ignored += 1
            return
        self._transport.sendto(ANSWER + data[len(REQUEST) :], addr)
        self.answered += 1

    def error_received(self, exc: Exception) -> None:
        """An answer could not be delivered: that is the client's trouble, and it sees a lost request."""
        log.debug("an answer was not delivered", error=str(exc))


def _is_request(data: bytes) -> bool:
    return data.startswith(REQUEST) and len(data) <= LONGEST


@asynccontextmanager
async def echo_server(bind: str, port: int, clock: Clock) -> AsyncIterator[tuple[EchoServer, int]]:
    """The server and its port; port 0 takes a free one."""
    loop = asyncio.get_running_loop()
    try:
        transport, server = await loop.create_datagram_endpoint(lambda: EchoServer(clock), local_addr=(bind, port))
    except OSError as error:
        raise InputError(f"cannot listen on UDP {bind}:{port}: {error}; choose another --bind or --port") from error
    try:
        yield server, transport.get_extra_info("sockname")[1]
    finally:
        transport.close()
