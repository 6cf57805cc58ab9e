"""One measurement: some requests one after the other, their mean round trip, the jitter and the share that was lost."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from statistics import fmean
from typing import Any

import aiohttp

from reactor.clock import Clock
from reactor.meter.echo import ANSWER, REQUEST


class MeterMode(StrEnum):
    UDP = "udp"
    HTTP = "http"


@dataclass(frozen=True, slots=True)
class RoundTrips:
    answered: tuple[float, ...]
    """Seconds of each request that was answered."""
    requests: int

    @property
    def mean(self) -> float | None:
        return fmean(self.answered) if self.answered else None

    @property
    def jitter(self) -> float | None:
        """Mean difference of two consecutive round trips."""
        steps = [abs(after - before) for before, after in zip(self.answered, self.answered[1:], strict=False)]
        return fmean(steps) if steps else None

    @property
    def loss(self) -> float:
        return 1 - len(self.answered) / self.requests


@dataclass(frozen=True, slots=True)
class MeterRequests:
    """What is sent for one measurement."""

    port: int
    number: int = 5
    timeout: float = 2.0
    """Seconds until a request counts as lost."""
    mode: MeterMode = MeterMode.UDP
    path: str = "/"


async def measure(host: str, wanted: MeterRequests, clock: Clock) -> RoundTrips:
    if wanted.mode is MeterMode.HTTP:
        return await _measure_http(host, wanted, clock)
    return await _measure_udp(host, wanted, clock)


class _Answers(asyncio.DatagramProtocol):
    def __init__(self) -> None:
        self.waiting: dict[bytes, asyncio.Future[None]] = {}

    def datagram_received(self, data: bytes, addr: tuple[str | Any, int]) -> None:  # noqa: ARG002
        if data.startswith(ANSWER):
            answer = self.waiting.get(data[len(ANSWER) :])
            if answer is not None and not answer.done():
                answer.set_result(None)

    def error_received(self, exc: Exception) -> None:
        """Nobody listens there: the request counts as lost after its time."""


async def _measure_udp(host: str, wanted: MeterRequests, clock: Clock) -> RoundTrips:
    loop = asyncio.get_running_loop()
    try:
        transport, answers = await loop.create_datagram_endpoint(_Answers, remote_addr=(host, wanted.port))
    except OSError:
        return RoundTrips((), wanted.number)

    async def ask() -> None:
        token = secrets.token_hex(8).encode()
        answers.waiting[token] = loop.create_future()
        transport.sendto(REQUEST + token)
        try:
            await answers.waiting[token]
        finally:
            del answers.waiting[token]

    try:
        return await _repeat(ask, wanted, clock)
    finally:
        transport.close()


async def _measure_http(host: str, wanted: MeterRequests, clock: Clock) -> RoundTrips:
    """A connection for each request, as users make: the handshake is part of it. A 5xx is no answer."""
    address = f"[{host}]" if ":" in host else host
    connector = aiohttp.TCPConnector(force_close=True)
    async with aiohttp.ClientSession(connector=connector) as session:

        async def ask() -> None:
            url = f"http://{address}:{wanted.port}{wanted.path}"
            async with session.get(url, allow_redirects=False) as response:
                await response.content.read(65536)
                if response.status >= 500:
                    raise ConnectionError(f"{url}: {response.status}")

        return await _repeat(ask, wanted, clock)


async def _repeat(ask: Callable[[], Awaitable[None]], wanted: MeterRequests, clock: Clock) -> RoundTrips:
    answered: list[float] = []
    for _ in range(wanted.number):
        began = clock.monotonic()
        with suppress(TimeoutError, OSError, aiohttp.ClientError):  # a lost request
            async with asyncio.timeout(wanted.timeout):
                await ask()
            answered.append(clock.monotonic() - began)
    return RoundTrips(tuple(answered), wanted.number)
