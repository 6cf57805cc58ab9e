"""A minimal HTTP client for probes and the load generator: one GET per connection, with a typed result."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from enum import StrEnum


class Ending(StrEnum):
    ANSWERED = "answered"
    TIMEOUT = "timeout"
    REFUSED = "refused"
    """Nobody listens."""
    CLOSED = "closed"
    """The connection was closed before an answer came."""
    RESET = "reset"
    UNREACHABLE = "unreachable"


@dataclass(frozen=True, slots=True)
class Answer:
    ending: Ending
    status: int = 0

    @property
    def ok(self) -> bool:
        return self.ending is Ending.ANSWERED and 200 <= self.status < 400


async def http_get(host: str, port: int, path: str, timeout: float) -> Answer:
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(timeout):
            transport, protocol = await loop.create_connection(lambda: _Get(host, port, path, loop), host, port)
            try:
                return await protocol.answer
            finally:
                transport.abort()
    except TimeoutError:
        return Answer(Ending.TIMEOUT)
    except ConnectionRefusedError:
        return Answer(Ending.REFUSED)
    except ConnectionResetError:
        return Answer(Ending.RESET)
    except OSError:
        return Answer(Ending.UNREACHABLE)


class _Get(asyncio.Protocol):
    """Reads the status line; the body is of no interest."""

    def __init__(self, host: str, port: int, path: str, loop: asyncio.AbstractEventLoop) -> None:
        self._head = f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: close\r\n\r\n".encode("latin-1")
        self._line = b""
        self.answer: asyncio.Future[Answer] = loop.create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        transport.write(self._head)

    def data_received(self, data: bytes) -> None:
        if self.answer.done():
            return
        self._line += data
        if b"\r\n" in self._line:
            self.answer.set_result(_read_status(self._line))

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.answer.done():
            reset = isinstance(exc, ConnectionResetError)
            self.answer.set_result(Answer(Ending.RESET if reset else Ending.CLOSED))


def _read_status(head: bytes) -> Answer:
    parts = head.split(b"\r\n", 1)[0].split(b" ", 2)
    if len(parts) < 2 or not parts[0].startswith(b"HTTP/1.") or not parts[1].isdigit():
        return Answer(Ending.CLOSED)
    return Answer(Ending.ANSWERED, int(parts[1]))
