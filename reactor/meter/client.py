"""`rematch latency-client`: measures the nodes with target or probe pods, and publishes what it found."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping
from dataclasses import dataclass

import structlog

from reactor.clock import Clock
from reactor.cluster.backoff import Backoff
from reactor.errors import BrokerError, ClusterError, NotFound
from reactor.meter.discovery import Discovery, MeasuredPod
from reactor.meter.measuring import MeterRequests, RoundTrips, measure
from reactor.signals.latency_messages import LatencyMessage, encode_message, rfc3339_precise
from reactor.signals.mqtt import Broker, BrokerAccess, BrokerConnection, connected

log = structlog.get_logger(__name__)

_AT_ONCE = 32
"""Nodes that are measured at the same time."""


@dataclass(frozen=True, slots=True)
class Publishing:
    broker: Broker
    access: BrokerAccess
    client_id: str
    topic: str
    """Without the namespace, which is its last level."""
    namespace: str


class LatencyClient:
    def __init__(self, discovery: Discovery, requests: MeterRequests, publishing: Publishing, clock: Clock) -> None:
        self._discovery = discovery
        self._requests = requests
        self._publishing = publishing
        self._clock = clock

    async def run(self, interval: float) -> None:
        """Until cancelled. What is measured while the broker is away is not kept: it would be late."""
        to, backoff = self._publishing, Backoff(random.random, first=0.5, cap=30.0)
        while True:
            try:
                async with connected(to.broker, to.access, to.client_id) as connection:
                    log.info("connected", broker=str(to.broker), topic=f"{to.topic}/{to.namespace}")
                    backoff.reset()
                    await self._measure_on(connection, interval)
            except BrokerError as error:
                pause = backoff.next()
                log.warning("the broker is away", problem=str(error), again_in=round(pause, 1))
                await self._clock.sleep(pause)

    async def _measure_on(self, connection: BrokerConnection, interval: float) -> None:
        backoff = Backoff(random.random, first=0.5, cap=30.0)
        while True:
            began = self._clock.monotonic()
            try:
                await self.once(connection)
                backoff.reset()
            except ClusterError as error:
                pause = backoff.next()
                log.warning("the pods cannot be listed", problem=str(error), again_in=round(pause, 1))
                await self._clock.sleep(pause)
            await self._clock.sleep(max(0.0, began + interval - self._clock.monotonic()))

    async def once(self, connection: BrokerConnection) -> Mapping[str, RoundTrips]:
        """One measurement of every node with such pods, published for each of these pods; by node."""
        pods = await self._discovery.pods()
        gate = asyncio.Semaphore(_AT_ONCE)
        nodes = sorted({pod.node for pod in pods})
        found = dict(zip(nodes, await asyncio.gather(*(self._node(node, gate) for node in nodes)), strict=True))
        for pod in pods:
            if (trips := found[pod.node]) is not None:
                await self._publish(connection, pod, trips)
        return {node: trips for node, trips in found.items() if trips is not None}

    async def _node(self, node: str, gate: asyncio.Semaphore) -> RoundTrips | None:
        async with gate:
            try:
                address = await self._discovery.address(node)
            except NotFound:
                address = None
            if address is None:
                log.warning("a node has no address to measure", node=node)
                return None
            trips = await measure(address, self._requests, self._clock)
            if not trips.answered:
                self._discovery.forget(node)
            return trips

    async def _publish(self, connection: BrokerConnection, pod: MeasuredPod, trips: RoundTrips) -> None:
        message = LatencyMessage(
            namespace=self._publishing.namespace,
            pod=pod.name,
            uid=pod.uid,
            timestamp=rfc3339_precise(self._clock.now()),
            rtt_seconds=trips.mean,
            jitter_seconds=trips.jitter,
            loss=trips.loss,
            requests=trips.requests,
            mode=self._requests.mode,
        )
        log.debug("measured", pod=pod.name, node=pod.node, rtt=trips.mean, loss=trips.loss)
        await connection.publish(f"{self._publishing.topic}/{message.namespace}", encode_message(message))
