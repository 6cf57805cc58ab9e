"""Sends the kubelet's Events in order and never makes anyone wait for it."""

from __future__ import annotations

import asyncio
import logging

from loadtests.kubelet.event_correlator import Create, EventCorrelator, Happening, Update
from loadtests.workloads.api import LabApi
from reactor.clock import Clock
from reactor.errors import ClusterError, NotFound, Unreachable

_log = logging.getLogger(__name__)
_QUEUE = 1000
_ATTEMPTS = 5


class EventRecorder:
    """When the queue is full new Events are lost, as in the real kubelet."""

    def __init__(self, node: str, api: LabApi, clock: Clock) -> None:
        self._api = api
        self._clock = clock
        self._correlator = EventCorrelator(node)
        self._queue: asyncio.Queue[Create | Update] = asyncio.Queue(_QUEUE)

    def record(self, happening: Happening) -> None:
        action = self._correlator.correlate(happening, self._clock.now())
        if action is not None and not self._queue.full():
            self._queue.put_nowait(action)

    def forget(self, uid: str) -> None:
        self._correlator.forget(uid)

    async def run(self) -> None:
        while True:
            action = await self._queue.get()
            try:
                await self._send(action)
            except ClusterError as error:
                _log.warning("event lost: %s", error)

    async def _send(self, action: Create | Update) -> None:
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                await self._send_once(action)
            except Unreachable:
                if attempt == _ATTEMPTS:
                    raise
                await self._clock.sleep(0.2 * attempt)
            else:
                return

    async def _send_once(self, action: Create | Update) -> None:
        if isinstance(action, Update):
            try:
                await self._api.patch(f"/api/v1/namespaces/{action.namespace}/events/{action.name}", action.patch)
            except NotFound:
                action = action.create_instead
            else:
                return
        await self._api.create(f"/api/v1/namespaces/{action.namespace}/events", action.body)
