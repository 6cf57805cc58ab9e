"""Writing to the cluster: evictions, bindings and our own Events, each with a typed answer.

A request that timed out may have been carried out. It is repeated only where a UID precondition makes that safe,
and only a few times.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from enum import StrEnum

import msgspec
from msgspec import Struct

from reactor.clock import Clock, rfc3339
from reactor.cluster.api import (
    MERGE_PATCH,
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
from reactor.errors import Forbidden, Unreachable

_DEADLINE = 15.0
_ATTEMPTS = 3
_PAUSE = 0.5
_UNCERTAIN = frozenset({502, 503, 504})
"""The request may or may not have reached what carries it out."""
_SEVERAL_BUDGETS = "more than one PodDisruptionBudget"


class Eviction(StrEnum):
    ACCEPTED = "accepted"
    PDB = "budget"
    """A PodDisruptionBudget does not allow it now."""
    THROTTLED = "throttled"
    """Flow control of the API server; says nothing about the pod."""
    SEVERAL_PDBS = "severalBudgets"
    """The API refuses pods that several budgets select: trying again will not help."""
    GONE = "gone"
    REPLACED = "replaced"
    """Another pod has the name by now."""
    FORBIDDEN = "forbidden"
    FAILED = "failed"
    UNKNOWN = "unknown"
    """No answer came, not even to the repetitions; the watch will tell."""


class Binding(StrEnum):
    BOUND = "bound"
    ALREADY_BOUND = "alreadyBound"
    """To another node: another scheduler was first."""
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

    async def evict(self, pod: Pod) -> EvictionAnswer:
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": pod.name, "namespace": pod.namespace},
            "deleteOptions": {"preconditions": {"uid": pod.uid}},
        }
        try:
            answer = await self._post_safely(f"{_path(pod)}/eviction", body)
            if answer.code == 409:
                return await self._eviction_conflict(pod, status_of(answer))
        except Forbidden as error:
            return EvictionAnswer(Eviction.FORBIDDEN, str(error))
        except Unreachable as error:
            return EvictionAnswer(Eviction.UNKNOWN, str(error))
        return _eviction_answer(answer)

    async def bind(self, pod: Pod, node: str) -> BindingAnswer:
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": pod.name, "namespace": pod.namespace, "uid": pod.uid},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        try:
            answer = await self._post_safely(f"{_path(pod)}/binding", body)
            if answer.code == 409:
                return await self._binding_conflict(pod, node, status_of(answer))
        except Forbidden as error:
            return BindingAnswer(Binding.FORBIDDEN, str(error))
        except Unreachable as error:
            return BindingAnswer(Binding.UNKNOWN, str(error))
        return _binding_answer(answer)

    async def _post_safely(self, path: str, body: Body) -> ApiResponse:
        """The body holds a UID precondition, so a repetition cannot hit another pod."""
        call = ApiRequest("POST", path, body=body, deadline=_DEADLINE)
        for attempt in range(1, _ATTEMPTS):
            try:
                answer = await self._connection.send(call)
                if answer.code not in _UNCERTAIN:
                    return answer
            except Unreachable:
                pass
            await self._clock.sleep(_PAUSE * attempt)
        return await self._connection.send(call)

    async def _eviction_conflict(self, pod: Pod, status: Status) -> EvictionAnswer:
        now = await self._look(pod)
        if now is None:
            return EvictionAnswer(Eviction.GONE, status.message)
        outcome = Eviction.FAILED if now.metadata.uid == pod.uid else Eviction.REPLACED
        return EvictionAnswer(outcome, status.message)

    async def _binding_conflict(self, pod: Pod, node: str, status: Status) -> BindingAnswer:
        """A repeated binding meets its own success: the pod itself tells which it was."""
        now = await self._look(pod)
        if now is None:
            return BindingAnswer(Binding.GONE, status.message)
        if now.metadata.uid != pod.uid:
            return BindingAnswer(Binding.REPLACED, status.message)
        if now.spec.node_name == node:
            return BindingAnswer(Binding.BOUND)
        outcome = Binding.ALREADY_BOUND if now.spec.node_name else Binding.FAILED
        return BindingAnswer(outcome, status.message)

    async def _look(self, pod: Pod) -> _PodNow | None:
        """The pod that has the name now; None when there is none."""
        answer = await self._connection.send(ApiRequest("GET", _path(pod), deadline=_DEADLINE))
        if answer.code == 404:
            return None
        if answer.code in (401, 403):
            raise error_of(status_of(answer), f"GET {_path(pod)}")
        if answer.code != 200:
            raise Unreachable(f"GET {_path(pod)}: {answer.code} {status_of(answer).message}", status=answer.code)
        try:
            return _POD_NOW.decode(answer.body)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise Unreachable(f"GET {_path(pod)}: not a pod: {error}") from error


def _path(pod: Pod) -> str:
    return f"{Kind.PODS.path(pod.namespace)}/{pod.name}"


def _eviction_answer(answer: ApiResponse) -> EvictionAnswer:
    if 200 <= answer.code < 300:
        return EvictionAnswer(Eviction.ACCEPTED)
    status = status_of(answer)
    if answer.code == 429:
        outcome = Eviction.PDB if status.has_cause("DisruptionBudget") else Eviction.THROTTLED
        return EvictionAnswer(outcome, status.message, status.retry_after)
    if answer.code == 500 and _SEVERAL_BUDGETS in status.message:
        return EvictionAnswer(Eviction.SEVERAL_PDBS, status.message)
    outcomes = {
        401: Eviction.FORBIDDEN,
        403: Eviction.FORBIDDEN,
        404: Eviction.GONE,
        **dict.fromkeys(_UNCERTAIN, Eviction.UNKNOWN),
    }
    return EvictionAnswer(outcomes.get(answer.code, Eviction.FAILED), status.message)


def _binding_answer(answer: ApiResponse) -> BindingAnswer:
    if 200 <= answer.code < 300:
        return BindingAnswer(Binding.BOUND)
    status = status_of(answer)
    outcomes = {
        401: Binding.FORBIDDEN,
        403: Binding.FORBIDDEN,
        404: Binding.GONE,
        429: Binding.THROTTLED,
        **dict.fromkeys(_UNCERTAIN, Binding.UNKNOWN),
    }
    return BindingAnswer(outcomes.get(answer.code, Binding.FAILED), status.message, status.retry_after)


COMPONENT = "rematch"
_EVENT_DEADLINE = 10.0
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
        body = _event_body(event, announcement, self._now())
        answer = await self._connection.send(ApiRequest("POST", path, body=body, deadline=_EVENT_DEADLINE))
        checked(answer, f"POST {path}")
        return event

    async def count_event(self, event: ObjectName, count: int) -> None:
        """Raises NotFound when the Event has expired (they live an hour): create it again."""
        path = f"{Kind.EVENTS.path(event.namespace)}/{event.name}"
        body = {"count": count, "lastTimestamp": self._now()}
        call = ApiRequest("PATCH", path, body=body, content_type=MERGE_PATCH, deadline=_EVENT_DEADLINE)
        checked(await self._connection.send(call), f"PATCH {path}")

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
