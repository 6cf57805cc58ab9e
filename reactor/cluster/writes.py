"""Writing to the cluster: evictions, bindings and Events.

Evictions and bindings have typed results. A request that timed out may have been carried out. It is repeated only
where a UID precondition makes that safe, and only a few times.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

import msgspec
from msgspec import Struct

from reactor.clock import Clock, rfc3339
from reactor.cluster.api import (
    MERGE_PATCH,
    STRATEGIC_MERGE_PATCH,
    ApiRequest,
    ApiResponse,
    Body,
    Connection,
    Status,
    checked,
    error_of,
    status_of,
)
from reactor.cluster.kinds import Kind, ObjectName
from reactor.cluster.records import Pod
from reactor.cluster.surge_writes import SurgeWriter
from reactor.errors import ClusterError, Forbidden, Unreachable

_DEADLINE = 15.0
_ATTEMPTS = 3
_PAUSE = 0.5
_UNCERTAIN = frozenset({502, 503, 504})
"""The request may or may not have been carried out."""
_CONCURRENT_WRITES = 16
_LONGEST_MESSAGE = 1000
T = TypeVar("T")
_SEVERAL_PDBS = "more than one PodDisruptionBudget"

BACKGROUND_ANNOTATION = "descheduler.alpha.kubernetes.io/request-evict-only"

COMPONENT = "rematch"
_EVENT_DEADLINE = 10.0
_LONGEST_STEM = 253 - 17
"""An Event's name starts with the object's name, and a name has at most 253 characters."""


class Eviction(StrEnum):
    ACCEPTED = "accepted"
    PDB = "budget"
    """A PodDisruptionBudget does not allow it now."""
    THROTTLED = "throttled"
    """Flow control of the API server; not related to the pod."""
    SEVERAL_PDBS = "severalBudgets"
    """The API refuses to evict pods that several PodDisruptionBudgets select; retrying does not help."""
    GONE = "gone"
    REPLACED = "replaced"
    """Another pod has the name now."""
    FORBIDDEN = "forbidden"
    FAILED = "failed"
    UNKNOWN = "unknown"
    """No response, not even to the repeated requests; the watch will show the result."""
    BACKGROUND = "background"
    """Accepted, but its owner ends the pod later (`request-evict-only`, as by KubeVirt's live migration)."""


class Binding(StrEnum):
    BOUND = "bound"
    ALREADY_BOUND = "alreadyBound"
    """To another node, by another scheduler."""
    THROTTLED = "throttled"
    GONE = "gone"
    REPLACED = "replaced"
    FORBIDDEN = "forbidden"
    FAILED = "failed"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class EvictionAnswer:
    outcome: Eviction
    message: str = ""
    retry_after: float | None = None


@dataclass(frozen=True, slots=True)
class BindingAnswer:
    outcome: Binding
    message: str = ""
    retry_after: float | None = None


class _Meta(Struct, gc=False):
    uid: str = ""


class _Spec(Struct, rename="camel", gc=False):
    node_name: str | None = None


class _PodNow(Struct, gc=False):
    metadata: _Meta
    spec: _Spec


_POD_NOW = msgspec.json.Decoder(_PodNow)


class ClusterWriter:
    def __init__(self, connection: Connection, clock: Clock) -> None:
        self._connection = connection
        self._clock = clock
        self.surges = SurgeWriter(connection, clock)

    async def evict(self, pod: Pod) -> EvictionAnswer:
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": pod.name, "namespace": pod.namespace},
            "deleteOptions": {"preconditions": {"uid": pod.uid}},
        }
        try:
            response, repeated = await self._post(f"{_path(pod)}/eviction", body)
            answer = _eviction_result(response)
            if response.code == 409:
                answer = await self._eviction_conflict(pod, status_of(response))
        except Forbidden as error:
            return EvictionAnswer(Eviction.FORBIDDEN, str(error))
        except Unreachable as error:
            return EvictionAnswer(Eviction.UNKNOWN, str(error))
        if repeated and answer.outcome in (Eviction.GONE, Eviction.REPLACED):
            return EvictionAnswer(Eviction.ACCEPTED, f"the first answer was lost; now: {answer.message}")
        if answer.outcome is Eviction.THROTTLED and BACKGROUND_ANNOTATION in pod.annotations:
            return EvictionAnswer(Eviction.BACKGROUND, answer.message)
        return answer

    async def bind(self, pod: Pod, node: str) -> BindingAnswer:
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": pod.name, "namespace": pod.namespace, "uid": pod.uid},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        try:
            response, _ = await self._post(f"{_path(pod)}/binding", body)
            if response.code == 409:
                return await self._binding_conflict(pod, node, status_of(response))
        except Forbidden as error:
            return BindingAnswer(Binding.FORBIDDEN, str(error))
        except Unreachable as error:
            return BindingAnswer(Binding.UNKNOWN, str(error))
        return _binding_result(response)

    async def mark_unschedulable(self, pod: Pod, reason: str, message: str) -> str:
        """Set PodScheduled=False, unless the pod has changed since we saw it: it may be bound by now. Returns why it
        was not written, empty if it was."""
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "reason": reason,
            "message": message[:_LONGEST_MESSAGE],
            "lastTransitionTime": rfc3339(self._clock.now()),
        }
        body = {
            "metadata": {"uid": pod.uid, "resourceVersion": pod.resource_version},
            "status": {"conditions": [condition]},
        }
        request = ApiRequest(
            "PATCH", f"{_path(pod)}/status", body=body, content_type=STRATEGIC_MERGE_PATCH, deadline=_DEADLINE
        )
        try:
            response = await self._connection.send(request)
        except ClusterError as error:
            return str(error)
        return "" if 200 <= response.code < 300 else f"{response.code}: {status_of(response).message}"

    async def _post(self, path: str, body: Body) -> tuple[ApiResponse, bool]:
        """The response, and whether an attempt before it may have been carried out. The body has a UID precondition, so
        a repeated request cannot affect another pod."""
        request = ApiRequest("POST", path, body=body, deadline=_DEADLINE)
        for attempt in range(1, _ATTEMPTS):
            try:
                response = await self._connection.send(request)
                if response.code not in _UNCERTAIN:
                    return response, attempt > 1
            except Unreachable:
                pass
            await self._clock.sleep(_PAUSE * attempt)
        return await self._connection.send(request), True

    async def _eviction_conflict(self, pod: Pod, status: Status) -> EvictionAnswer:
        current = await self._read(pod)
        if current is None:
            return EvictionAnswer(Eviction.GONE, status.message)
        outcome = Eviction.FAILED if current.metadata.uid == pod.uid else Eviction.REPLACED
        return EvictionAnswer(outcome, status.message)

    async def _binding_conflict(self, pod: Pod, node: str, status: Status) -> BindingAnswer:
        """A repeated binding conflicts with its own success; the pod's node shows what happened."""
        current = await self._read(pod)
        if current is None:
            return BindingAnswer(Binding.GONE, status.message)
        if current.metadata.uid != pod.uid:
            return BindingAnswer(Binding.REPLACED, status.message)
        if current.spec.node_name == node:
            return BindingAnswer(Binding.BOUND)
        outcome = Binding.ALREADY_BOUND if current.spec.node_name else Binding.FAILED
        return BindingAnswer(outcome, status.message)

    async def _read(self, pod: Pod) -> _PodNow | None:
        """The pod that has the name now, or None."""
        response = await self._connection.send(ApiRequest("GET", _path(pod), deadline=_DEADLINE))
        if response.code == 404:
            return None
        if response.code in (401, 403):
            raise error_of(status_of(response), f"GET {_path(pod)}")
        if response.code != 200:
            raise Unreachable(f"GET {_path(pod)}: {response.code} {status_of(response).message}", status=response.code)
        try:
            return _POD_NOW.decode(response.body)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise Unreachable(f"GET {_path(pod)}: not a pod: {error}") from error


async def gather_limited(calls: Sequence[Callable[[], Awaitable[T]]], limit: int = _CONCURRENT_WRITES) -> list[T]:
    """The results in the order of the calls, at most `limit` of which run at once. A failure cancels the others."""
    slots = asyncio.Semaphore(limit)

    async def run(call: Callable[[], Awaitable[T]]) -> T:
        async with slots:
            return await call()

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(run(call)) for call in calls]
    return [task.result() for task in tasks]


def _path(pod: Pod) -> str:
    return f"{Kind.PODS.path(pod.namespace)}/{pod.name}"


def _eviction_result(response: ApiResponse) -> EvictionAnswer:
    if 200 <= response.code < 300:
        return EvictionAnswer(Eviction.ACCEPTED)
    status = status_of(response)
    if response.code == 429:
        outcome = Eviction.PDB if status.has_cause("DisruptionBudget") else Eviction.THROTTLED
        return EvictionAnswer(outcome, status.message, status.retry_after)
    if response.code == 500 and _SEVERAL_PDBS in status.message:
        return EvictionAnswer(Eviction.SEVERAL_PDBS, status.message)
    outcomes = {
        401: Eviction.FORBIDDEN,
        403: Eviction.FORBIDDEN,
        404: Eviction.GONE,
        **dict.fromkeys(_UNCERTAIN, Eviction.UNKNOWN),
    }
    return EvictionAnswer(outcomes.get(response.code, Eviction.FAILED), status.message)


def _binding_result(response: ApiResponse) -> BindingAnswer:
    if 200 <= response.code < 300:
        return BindingAnswer(Binding.BOUND)
    status = status_of(response)
    outcomes = {
        401: Binding.FORBIDDEN,
        403: Binding.FORBIDDEN,
        404: Binding.GONE,
        429: Binding.THROTTLED,
        **dict.fromkeys(_UNCERTAIN, Binding.UNKNOWN),
    }
    return BindingAnswer(outcomes.get(response.code, Binding.FAILED), status.message, status.retry_after)


@dataclass(frozen=True, slots=True)
class Announcement:
    """An Event to create. `type` is Normal or Warning. Events of cluster-scoped objects are in `default`."""

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
        """Returns the Event's name, for `count_event` when it repeats."""
        namespace = announcement.namespace or "default"
        event = ObjectName(namespace, f"{announcement.name[:_LONGEST_STEM]}.{secrets.token_hex(8)}")
        path = Kind.EVENTS.path(namespace)
        body = _event_body(event, announcement, self._now())
        response = await self._connection.send(ApiRequest("POST", path, body=body, deadline=_EVENT_DEADLINE))
        checked(response, f"POST {path}")
        return event

    async def count_event(self, event: ObjectName, count: int) -> None:
        """Raises NotFound when the Event has expired (after an hour); then create it again."""
        path = f"{Kind.EVENTS.path(event.namespace)}/{event.name}"
        body = {"count": count, "lastTimestamp": self._now()}
        request = ApiRequest("PATCH", path, body=body, content_type=MERGE_PATCH, deadline=_EVENT_DEADLINE)
        checked(await self._connection.send(request), f"PATCH {path}")

    def _now(self) -> str:
        return rfc3339(self._clock.now())


def _event_body(event: ObjectName, announcement: Announcement, now: str) -> dict[str, object]:
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
