"""Limits on the connections of a server: how many there are, how many of one address, and how long they may wait.

aiohttp has none of these. Anyone who reaches the port could open connections until the process has no file handles
left: then it accepts no probe of its kubelet, either, and logs every failed attempt.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable

import structlog
from msgspec import Struct

log = structlog.get_logger(__name__)

_REPORTED_EVERY = 60.0


class ConnectionLimits(Struct, frozen=True):
    most: int = 128
    most_of_one_address: int = 64
    """All viewers behind a proxy have one address."""
    first_request: float = 10.0
    """Seconds that a new connection has to send a whole request."""
    one_request: float = 60.0
    """Seconds from a request to the end of its response and to the next one."""
    keep_alive: float = 15.0
    """Seconds that an idle connection is kept."""


PROBE_LIMITS = ConnectionLimits(most=64, most_of_one_address=32, one_request=30.0)


class Connections:
    """The open connections of one server."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self._limits = limits
        self._of_address: Counter[str] = Counter()
        self._guards: dict[asyncio.BaseTransport, _Guard] = {}
        self.refused = 0
        self._unreported = 0
        self._reported_at = float("-inf")

    def guarded(self, make: Callable[[], asyncio.Protocol]) -> Callable[[], asyncio.Protocol]:
        """The same protocol, but only for as many connections as the limits allow."""
        return lambda: _Guard(make, self, self._limits)

    def begin_request(self, transport: asyncio.BaseTransport | None, *, endless: bool) -> None:
        """`endless` is a stream, which limits itself."""
        guard = self._guards.get(transport) if transport is not None else None
        if guard is not None:
            guard.end_within(None if endless else self._limits.one_request)

    def admit(self, guard: _Guard, transport: asyncio.BaseTransport, address: str) -> bool:
        if len(self._guards) >= self._limits.most or self._of_address[address] >= self._limits.most_of_one_address:
            self._refuse(address)
            return False
        self._guards[transport] = guard
        self._of_address[address] += 1
        return True

    def release(self, transport: asyncio.BaseTransport, address: str) -> None:
        del self._guards[transport]
        self._of_address[address] -= 1
        if not self._of_address[address]:
            del self._of_address[address]

    def _refuse(self, address: str) -> None:
        """One line a minute, however many there are."""
        self.refused += 1
        self._unreported += 1
        now = asyncio.get_running_loop().time()
        if now - self._reported_at >= _REPORTED_EVERY:
            log.warning("connections refused: too many are open", number=self._unreported, last=address)
            self._unreported, self._reported_at = 0, now


class _Guard(asyncio.Protocol):
    """Passes on what one connection does, and ends it when its time is up."""

    def __init__(
        self, make: Callable[[], asyncio.Protocol], connections: Connections, limits: ConnectionLimits
    ) -> None:
        self._make = make
        self._connections = connections
        self._limits = limits
        self._inner: asyncio.Protocol | None = None
        self._transport: asyncio.Transport | None = None
        self._address = ""
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        peer = transport.get_extra_info("peername")
        self._address = str(peer[0]) if peer else ""
        if not self._connections.admit(self, transport, self._address):
            transport.abort()
            return
        self._transport, self._inner = transport, self._make()
        self.end_within(self._limits.first_request)
        self._inner.connection_made(transport)

    def end_within(self, seconds: float | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if seconds is not None and self._transport is not None:
            self._timer = asyncio.get_running_loop().call_later(seconds, self._transport.abort)

    def data_received(self, data: bytes) -> None:
        if self._inner is not None:
            self._inner.data_received(data)

    def eof_received(self) -> bool | None:
        return self._inner.eof_received() if self._inner is not None else None

    def pause_writing(self) -> None:
        if self._inner is not None:
            self._inner.pause_writing()

    def resume_writing(self) -> None:
        if self._inner is not None:
            self._inner.resume_writing()

    def connection_lost(self, error: Exception | None) -> None:
        self.end_within(None)
        if self._inner is not None and self._transport is not None:
            self._connections.release(self._transport, self._address)
            self._inner.connection_lost(error)
