"""Our own Events in the cluster. Who says what how often is the recorder's business; this only writes them."""

from __future__ import annotations

import secrets
from dataclasses import dataclass

from reactor.clock import Clock, rfc3339
from reactor.cluster.api import MERGE_PATCH, ApiRequest, Connection
from reactor.cluster.kinds import Kind, ObjectName
from reactor.cluster.status import checked

COMPONENT = "rematch"
_DEADLINE = 10.0
_LONGEST_STEM = 253 - 17
"""An Event's name holds the object's, and names end at 253 characters."""


@dataclass(frozen=True, slots=True)
class Announcement:
    """`type` is Normal or Warning. Events about objects without a namespace live in `default`."""

    object_kind: str
    namespace: str
    name: str
    uid: str
    reason: str
    message: str
    type: str = "Normal"
    api_version: str = "v1"


class EventWriter:
    def __init__(self, connection: Connection, clock: Clock) -> None:
        self._connection = connection
        self._clock = clock

    async def create_event(self, announcement: Announcement) -> ObjectName:
        """Returns the Event's name, for `count_event` when the same is to be said again."""
        namespace = announcement.namespace or "default"
        event = ObjectName(namespace, f"{announcement.name[:_LONGEST_STEM]}.{secrets.token_hex(8)}")
        path = Kind.EVENTS.path(namespace)
        body = _body(event, announcement, self._now())
        answer = await self._connection.send(ApiRequest("POST", path, body=body, deadline=_DEADLINE))
        checked(answer, f"POST {path}")
        return event

    async def count_event(self, event: ObjectName, count: int) -> None:
        """Raises NotFound when the Event has expired (they live an hour): create it again."""
        path = f"{Kind.EVENTS.path(event.namespace)}/{event.name}"
        body = {"count": count, "lastTimestamp": self._now()}
        call = ApiRequest("PATCH", path, body=body, content_type=MERGE_PATCH, deadline=_DEADLINE)
        checked(await self._connection.send(call), f"PATCH {path}")

    def _now(self) -> str:
        return rfc3339(self._clock.now())


def _body(event: ObjectName, announcement: Announcement, now: str) -> dict[str, object]:
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": event.name, "namespace": event.namespace},
        "involvedObject": {
            "apiVersion": announcement.api_version,
            "kind": announcement.object_kind,
            "namespace": announcement.namespace,
            "name": announcement.name,
            "uid": announcement.uid,
        },
        "reason": announcement.reason,
        "message": announcement.message,
        "type": announcement.type,
        "count": 1,
        "firstTimestamp": now,
        "lastTimestamp": now,
        "source": {"component": COMPONENT},
        "reportingComponent": COMPONENT,
    }
