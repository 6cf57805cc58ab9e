"""The kubelet's Events: the correlator (pure) counts, combines and limits them; the recorder sends them.

Equal Events are counted on one object; after ten different messages of one reason in ten minutes they are combined; and
per object 25 Events of a type may go out at once, then one in 300 s (Warnings and Normal ones apart, as recorded).
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from typing import Any

from loadtests.embedded.objects import timestamp
from loadtests.workloads.api import LabApi
from reactor.clock import Clock
from reactor.errors import ClusterError, NotFound, Unreachable

Json = dict[str, Any]

_BURST = 25.0
_REFILL_SECONDS = 300.0
_COMBINE_AFTER = 10
_COMBINE_SECONDS = 600.0
_COMBINED = "(combined from similar events): "


_Source = tuple[str, str, str, str, str]
_log = logging.getLogger(__name__)
_QUEUE = 1000
_ATTEMPTS = 5


@dataclass(frozen=True, slots=True)
class Subject:
    """The object an Event is about. Nodes have no namespace, and the kubelet names them without a version."""

    kind: str
    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    field_path: str = ""


@dataclass(frozen=True, slots=True)
class Happening:
    subject: Subject
    type: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Create:
    namespace: str
    body: Json


@dataclass(frozen=True, slots=True)
class Update:
    namespace: str
    name: str
    patch: Json
    create_instead: Create
    """When the Event has expired on the server meanwhile."""


@dataclass(slots=True)
class _Bucket:
    tokens: float
    at: float


@dataclass(slots=True)
class _Messages:
    seen: set[str] = field(default_factory=set)
    at: float = 0.0


@dataclass(frozen=True, slots=True)
class _Known:
    name: str
    first: float
    count: int


class EventCorrelator:
    def __init__(self, node: str) -> None:
        self._node = node
        self._buckets: dict[_Source, _Bucket] = {}
        self._messages: dict[tuple[_Source, str], _Messages] = {}
        self._known: dict[tuple[_Source, str, str, str], _Known] = {}

    def correlate(self, happening: Happening, now: float) -> Create | Update | None:
        """None: the spam filter swallows it. Combining comes before filtering, as in the original."""
        subject = happening.subject
        source = (happening.type, subject.kind, subject.namespace, subject.name, subject.uid)
        message, key_message = self._combine(source, happening, now)
        if not self._let_through(source, now):
            return None
        key = (source, subject.field_path, happening.reason, key_message)
        known = self._known.get(key)
        count = 1 if known is None else known.count + 1
        name = f"{subject.name}.{int(now * 1e9):x}" if known is None else known.name
        first = now if known is None else known.first
        self._known[key] = _Known(name, first, count)
        create = Create(subject.namespace or "default", self._body(happening, message, self._known[key], now))
        if known is None:
            return create
        patch = {"count": count, "lastTimestamp": timestamp(now), "message": message}
        return Update(create.namespace, name, patch, create)

    def forget(self, uid: str) -> None:
        """The pod is gone for good."""
        self._buckets = {key: value for key, value in self._buckets.items() if key[4] != uid}
        self._messages = {key: value for key, value in self._messages.items() if key[0][4] != uid}
        self._known = {key: value for key, value in self._known.items() if key[0][4] != uid}

    def _combine(self, source: _Source, happening: Happening, now: float) -> tuple[str, str]:
        """The message to show, and the one to count under."""
        record = self._messages.setdefault((source, happening.reason), _Messages())
        if now - record.at > _COMBINE_SECONDS:
            record.seen.clear()
        record.at = now
        record.seen.add(happening.message)
        if len(record.seen) < _COMBINE_AFTER:
            return happening.message, happening.message
        record.seen.discard(happening.message)
        return _COMBINED + happening.message, _COMBINED

    def _let_through(self, source: _Source, now: float) -> bool:
        bucket = self._buckets.setdefault(source, _Bucket(_BURST, now))
        bucket.tokens = min(_BURST, bucket.tokens + (now - bucket.at) / _REFILL_SECONDS)
        bucket.at = now
        if bucket.tokens < 1:
            return False
        bucket.tokens -= 1
        return True

    def _body(self, happening: Happening, message: str, known: _Known, now: float) -> Json:
        subject = happening.subject
        involved = {
            "apiVersion": "v1",
            "fieldPath": subject.field_path,
            "kind": subject.kind,
            "name": subject.name,
            "namespace": subject.namespace,
            "resourceVersion": subject.resource_version,
            "uid": subject.uid,
        }
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": known.name, "namespace": subject.namespace or "default"},
            "involvedObject": {key: value for key, value in involved.items() if value},
            "reason": happening.reason,
            "message": message,
            "source": {"component": "kubelet", "host": self._node},
            "firstTimestamp": timestamp(known.first),
            "lastTimestamp": timestamp(now),
            "count": known.count,
            "type": happening.type,
            "eventTime": None,
            "reportingComponent": "kubelet",
            "reportingInstance": self._node,
        }


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
