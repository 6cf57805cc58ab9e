"""The way to a node: at its address and NodePorts, what comes and goes is delayed, and some of it is lost.

It stands for the network between the user and the node and for kube-proxy on the node. A connection is accepted at
once, so a request costs one round trip and not two. A lost datagram is lost; what is lost of a connection is sent again
after a round trip, and no sooner than the kernel would.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, cast

from loadtests.experiments.latency.endpoints import Endpoint

Pick = Callable[[], Sequence[Endpoint]]
_CHUNK = 65536
_LEAST_RESEND = 0.2
_FLOW_SECONDS = 60.0
"""From the first datagram of a client to the end of its flow; a meter takes a new port for every measurement."""


@dataclass(slots=True)
class Way:
    """To one node."""

    delay: float
    """Seconds each way."""
    loss: float
    """Share of the packets, each way."""
    random: random.Random

    def loses(self) -> bool:
        return self.random.random() < self.loss

    def lag(self) -> float:
        """Of a piece of a connection."""
        lag = self.delay
        while self.loses():
            lag += max(_LEAST_RESEND, 2 * self.delay)
        return lag


class NodeRelay:
    """`udp` and `tcp` choose the endpoints at the moment when something has arrived at the node."""

    def __init__(self, address: str, way: Way, udp: Pick, tcp: Pick) -> None:
        self.address = address
        self.way = way
        self._udp = udp
        self._tcp = tcp
        self._connections: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self._datagrams: asyncio.DatagramTransport | None = None

    async def start(self, udp_port: int, tcp_port: int) -> None:
        loop = asyncio.get_running_loop()
        self._datagrams, _ = await loop.create_datagram_endpoint(
            lambda: _Datagrams(self.way, self._udp), local_addr=(self.address, udp_port)
        )
        self._server = await asyncio.start_server(self._accepted, self.address, tcp_port, backlog=256)

    async def stop(self) -> None:
        if self._datagrams is not None:
            self._datagrams.close()
        if self._server is not None:
            self._server.close()
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._serve(reader, writer))
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with suppress(OSError):  # the client sees a connection that is reset
                first = await reader.read(_CHUNK)
                await asyncio.sleep(self.way.lag())
                endpoints = self._tcp()
                if not first or not endpoints:
                    return
                await self._forward(first, reader, writer, self.way.random.choice(endpoints))
        finally:
            writer.close()

    async def _forward(
        self, first: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, endpoint: Endpoint
    ) -> None:
        inner_reader, inner_writer = await asyncio.open_connection(endpoint.host, endpoint.port)
        try:
            inner_writer.write(first)
            upstream = asyncio.create_task(self._carry(reader, inner_writer))
            try:
                await self._carry(inner_reader, writer)
            finally:
                upstream.cancel()
                await asyncio.gather(upstream, return_exceptions=True)
        finally:
            inner_writer.close()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while chunk := await reader.read(_CHUNK):
            await asyncio.sleep(self.way.lag())
            writer.write(chunk)
            await writer.drain()


class _Datagrams(asyncio.DatagramProtocol):
    def __init__(self, way: Way, pick: Pick) -> None:
        self._way = way
        self._pick = pick
        self._transport: asyncio.DatagramTransport | None = None
        self._flows: dict[tuple[tuple[str, int], Endpoint], asyncio.DatagramTransport] = {}
        self._arriving: set[asyncio.Task[None]] = set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.DatagramTransport, transport)  # asyncio's own is no instance of it

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        for task in self._arriving:
            task.cancel()
        for flow in self._flows.values():
            flow.close()

    def datagram_received(self, data: bytes, addr: tuple[str | Any, int]) -> None:
        if not self._way.loses():
            task = asyncio.create_task(self._arrive(data, addr))
            self._arriving.add(task)
            task.add_done_callback(self._arriving.discard)

    def error_received(self, exc: Exception) -> None:
        """A datagram that nobody took is lost."""

    async def _arrive(self, data: bytes, client: tuple[str, int]) -> None:
        await asyncio.sleep(self._way.delay)
        if endpoints := self._pick():
            (await self._flow(client, self._way.random.choice(endpoints))).sendto(data)

    async def _flow(self, client: tuple[str, int], endpoint: Endpoint) -> asyncio.DatagramTransport:
        key = (client, endpoint)
        if key not in self._flows:
            loop = asyncio.get_running_loop()
            flow, _ = await loop.create_datagram_endpoint(
                lambda: _Answers(lambda data: self._answer(data, client)), remote_addr=(endpoint.host, endpoint.port)
            )
            self._flows[key] = flow
            loop.call_later(_FLOW_SECONDS, self._forget, key)
        return self._flows[key]

    def _answer(self, data: bytes, client: tuple[str, int]) -> None:
        if not self._way.loses():
            asyncio.get_running_loop().call_later(self._way.delay, self._deliver, data, client)

    def _deliver(self, data: bytes, client: tuple[str, int]) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.sendto(data, client)

    def _forget(self, key: tuple[tuple[str, int], Endpoint]) -> None:
        if (flow := self._flows.pop(key, None)) is not None:
            flow.close()


class _Answers(asyncio.DatagramProtocol):
    def __init__(self, see: Callable[[bytes], None]) -> None:
        self._see = see

    def datagram_received(self, data: bytes, addr: tuple[str | Any, int]) -> None:  # noqa: ARG002
        self._see(data)

    def error_received(self, exc: Exception) -> None:
        """The pod has ended: the datagram is lost."""
