"""What a surge reads and writes: replicas of an owner, labels and annotations of a pod, Services and their endpoints.

Every write names the resourceVersion that was seen, so that it is refused when it comes late and somebody has written
meanwhile. A write without an answer is read back or repeated, never guessed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

import msgspec
from msgspec import Struct

from reactor.clock import Clock
from reactor.cluster.api import MERGE_PATCH, ApiRequest, ApiResponse, Connection, checked, decoded, error_of, status_of
from reactor.cluster.kinds import BY_OBJECT_KIND, Kind
from reactor.cluster.records import Owner, Pod
from reactor.errors import ClusterError, Conflict, Forbidden, NotFound, NotLeader, Refused, Throttled, Unreachable

DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
LOWEST_COST = "-2147483647"
TAKEN_BACK = "rematch.io/taken-back"
"""Annotation of a pod that stays after its move was undone, with the id of the move."""
SURGE = "rematch.io/surge"
"""Annotation of a pod that a surge has changed, with what takes this back."""
_DEADLINE = 15.0
_ATTEMPTS = 3
_PAUSE = 0.5


class Answer(StrEnum):
    """To one write of a surge."""

    DONE = "done"
    ALREADY = "already"
    """It was so before the first attempt of this call."""
    GONE = "gone"
    """The object is gone, or another one has its name."""
    CHANGED = "changed"
    """Somebody else has written the value: theirs counts."""
    REFUSED = "refused"
    """To repeat it does not help."""
    LATER = "later"
    """Throttled, in conflict, or without an answer: try again."""


@dataclass(frozen=True, slots=True)
class CallAnswer:
    outcome: Answer
    message: str = ""


class _Meta(Struct, rename="camel", gc=False):
    name: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    deletion_timestamp: str | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None


class _Strategy(Struct, gc=False):
    type: str = ""


class _Spec(Struct, rename="camel", gc=False):
    replicas: int | None = None
    paused: bool = False
    min_ready_seconds: int = 0
    strategy: _Strategy = msgspec.field(default_factory=_Strategy)


class _Condition(Struct, gc=False):
    type: str = ""
    status: str = ""
    message: str = ""


class _Status(Struct, rename="camel", gc=False):
    observed_generation: int = 0
    replicas: int = 0
    updated_replicas: int | None = None
    conditions: list[_Condition] | None = None


class _Object(Struct, gc=False):
    metadata: _Meta
    spec: _Spec = msgspec.field(default_factory=_Spec)
    status: _Status = msgspec.field(default_factory=_Status)


class _ServiceSpec(Struct, gc=False):
    selector: dict[str, str] | None = None


class _Service(Struct, gc=False):
    metadata: _Meta
    spec: _ServiceSpec = msgspec.field(default_factory=_ServiceSpec)


class _Services(Struct, gc=False):
    items: list[_Service] | None = None


class _Target(Struct, gc=False):
    uid: str = ""


class _Conditions(Struct, gc=False):
    ready: bool | None = None


class _Endpoint(Struct, rename="camel", gc=False):
    target_ref: _Target | None = None
    conditions: _Conditions = msgspec.field(default_factory=_Conditions)


class _Slice(Struct, gc=False):
    endpoints: list[_Endpoint] | None = None


class _Slices(Struct, gc=False):
    items: list[_Slice] | None = None


_OBJECT = msgspec.json.Decoder(_Object)
_SERVICES = msgspec.json.Decoder(_Services)
_SLICES = msgspec.json.Decoder(_Slices)


@dataclass(frozen=True, slots=True)
class OwnerNow:
    """A Deployment or ReplicaSet as the API server has it now."""

    resource_version: str
    generation: int
    replicas: int
    settled: bool
    """Its controller has seen the newest spec, and neither a rollout nor a scaling is under way."""
    paused: bool = False
    update_strategy: str = ""
    min_ready: float = 0.0
    failure: str = ""
    """Why it cannot create pods: the condition ReplicaFailure."""


@dataclass(frozen=True, slots=True)
class ServedBy:
    """The Services that select a pod."""

    selectors: tuple[Mapping[str, str], ...] = ()
    serving: int = 0
    """In how many of them the pod is a ready endpoint."""
    at: float = float("-inf")
    """When this was read."""

    @property
    def by_all(self) -> bool:
        return self.serving == len(self.selectors)


class SurgeWriter:
    def __init__(self, connection: Connection, clock: Clock) -> None:
        self._connection = connection
        self._clock = clock

    async def read_owner(self, owner: Owner, namespace: str) -> OwnerNow | None:
        """None when it is gone, on its way out, or another one with its name. Raises a ClusterError."""
        path = _owner_path(owner, namespace)
        response = await self._send(ApiRequest("GET", path, deadline=_DEADLINE))
        if response.code == 404:
            return None
        found = decoded(_OBJECT, checked(response, f"GET {path}"), f"GET {path}")
        if found.metadata.uid != owner.uid or found.metadata.deletion_timestamp is not None:
            return None
        return _owner_now(found)

    async def scale(
        self,
        owner: Owner,
        namespace: str,
        *,
        expected: int,
        wanted: int,
        generation: int | None = None,
        manager: str | None = None,
    ) -> CallAnswer:
        """Compare and swap: writes `wanted` where `replicas` is `expected` (and the generation, if given), in the name
        of the field manager.

        An attempt whose answer was lost is read back. A value that somebody else wrote stays.
        """
        sent = False
        answer = CallAnswer(Answer.LATER, "no attempt was answered")
        for attempt in range(_ATTEMPTS):
            if attempt:
                await self._clock.sleep(_PAUSE * attempt)
            try:
                now = await self.read_owner(owner, namespace)
                if now is None:
                    return CallAnswer(Answer.GONE, f"{owner.kind} {owner.name} is gone")
                if now.replicas == wanted:
                    return CallAnswer(Answer.DONE if sent else Answer.ALREADY)
                if now.replicas != expected or generation not in (None, now.generation):
                    return CallAnswer(Answer.CHANGED, f"{owner.kind} {owner.name} has {now.replicas} replicas now")
                sent = True
                await self._put_scale(owner, namespace, now.resource_version, wanted, manager)
                return CallAnswer(Answer.DONE)
            except (Conflict, Unreachable, NotFound) as error:
                answer = CallAnswer(Answer.LATER, str(error))
            except ClusterError as error:
                return _answer_of(error)
        return answer

    async def patch_pod(
        self,
        pod: Pod,
        *,
        labels: Mapping[str, str | None] | None = None,
        annotations: Mapping[str, str | None] | None = None,
    ) -> CallAnswer:
        """Sets labels and annotations, None removes one.

        Where anybody has changed the pod since it was seen, nothing is written: the move is to be looked at again.
        """
        change = {"labels": dict(labels or {}), "annotations": dict(annotations or {})}
        metadata = {"uid": pod.uid, "resourceVersion": pod.resource_version, **change}
        path = f"{Kind.PODS.path(pod.namespace)}/{pod.name}"
        request = ApiRequest("PATCH", path, body={"metadata": metadata}, content_type=MERGE_PATCH, deadline=_DEADLINE)
        answer = CallAnswer(Answer.LATER)
        for attempt in range(_ATTEMPTS):
            if attempt:
                await self._clock.sleep(_PAUSE * attempt)
            try:
                checked(await self._send(request), f"PATCH {path}")
                return CallAnswer(Answer.DONE)
            except NotFound as error:
                return CallAnswer(Answer.GONE, str(error))
            except Unreachable as error:
                answer = CallAnswer(Answer.LATER, str(error))
            except (Conflict, Refused) as error:
                return await self._refused_patch(pod, change, error)
            except ClusterError as error:
                return _answer_of(error)
        return answer

    async def services_of(self, pod: Pod) -> ServedBy:
        """The Services that select the pod by its labels, and whether it is a ready endpoint of each."""
        path = f"/api/v1/namespaces/{pod.namespace}/services"
        services = decoded(_SERVICES, await self._get(path), f"GET {path}").items or []
        selecting = [
            each for each in services if each.spec.selector and each.spec.selector.items() <= pod.labels.items()
        ]
        serving = 0
        for service in selecting:
            serving += await self._serves(pod, service.metadata.name)
        return ServedBy(tuple(each.spec.selector or {} for each in selecting), serving, self._clock.now())

    async def _serves(self, pod: Pod, service: str) -> bool:
        path = f"/apis/discovery.k8s.io/v1/namespaces/{pod.namespace}/endpointslices"
        body = await self._get(path, {"labelSelector": f"kubernetes.io/service-name={service}"})
        endpoints = [each for one in decoded(_SLICES, body, f"GET {path}").items or () for each in one.endpoints or ()]
        return any(
            each.target_ref is not None and each.target_ref.uid == pod.uid and each.conditions.ready is not False
            for each in endpoints
        )

    async def _put_scale(self, owner: Owner, namespace: str, version: str, replicas: int, manager: str | None) -> None:
        path = f"{_owner_path(owner, namespace)}/scale"
        body = {
            "apiVersion": "autoscaling/v1",
            "kind": "Scale",
            "metadata": {"name": owner.name, "namespace": namespace, "resourceVersion": version},
            "spec": {"replicas": replicas},
        }
        query = None if manager is None else {"fieldManager": manager}
        checked(await self._send(ApiRequest("PUT", path, query, body, deadline=_DEADLINE)), f"PUT {path}")

    async def _refused_patch(
        self, pod: Pod, change: Mapping[str, Mapping[str, str | None]], error: ClusterError
    ) -> CallAnswer:
        """The pod that has the name now decides: another one has another UID, and an attempt whose answer was lost may
        have been carried out."""
        path = f"{Kind.PODS.path(pod.namespace)}/{pod.name}"
        try:
            response = await self._send(ApiRequest("GET", path, deadline=_DEADLINE))
            if response.code == 404:
                return CallAnswer(Answer.GONE, str(error))
            found = decoded(_OBJECT, checked(response, f"GET {path}"), f"GET {path}").metadata
        except ClusterError as unread:
            return CallAnswer(Answer.LATER, str(unread))
        if found.uid != pod.uid:
            return CallAnswer(Answer.GONE, str(error))
        if not isinstance(error, Conflict):
            return CallAnswer(Answer.REFUSED, str(error))
        labels, annotations = found.labels or {}, found.annotations or {}
        done = all(labels.get(key) == value for key, value in change["labels"].items()) and all(
            annotations.get(key) == value for key, value in change["annotations"].items()
        )
        return CallAnswer(Answer.ALREADY if done else Answer.LATER, str(error))

    async def _get(self, path: str, query: Mapping[str, str] | None = None) -> bytes:
        return checked(await self._send(ApiRequest("GET", path, query, deadline=_DEADLINE)), f"GET {path}")

    async def _send(self, request: ApiRequest) -> ApiResponse:
        """Raises Unreachable also for the answers that proxies and overloaded servers give."""
        response = await self._connection.send(request)
        if response.code >= 500:
            raise error_of(status_of(response), f"{request.method} {request.path}")
        return response


def _owner_path(owner: Owner, namespace: str) -> str:
    return f"{BY_OBJECT_KIND[owner.kind].path(namespace)}/{owner.name}"


def _owner_now(found: _Object) -> OwnerNow:
    meta, spec, status = found.metadata, found.spec, found.status
    replicas = 1 if spec.replicas is None else spec.replicas
    updated = replicas if status.updated_replicas is None else status.updated_replicas
    failures = (each.message for each in status.conditions or () if each.type == "ReplicaFailure")
    failed = any(each.type == "ReplicaFailure" and each.status == "True" for each in status.conditions or ())
    return OwnerNow(
        meta.resource_version,
        meta.generation,
        replicas,
        settled=status.observed_generation >= meta.generation and status.replicas == replicas == updated,
        paused=spec.paused,
        update_strategy=spec.strategy.type,
        min_ready=float(spec.min_ready_seconds),
        failure=next(failures, "") or "it cannot create pods" if failed else "",
    )


def _answer_of(error: ClusterError) -> CallAnswer:
    if isinstance(error, (Throttled, Unreachable, Conflict, NotLeader)):
        return CallAnswer(Answer.LATER, str(error))
    if isinstance(error, NotFound):
        return CallAnswer(Answer.GONE, str(error))
    outcome = Answer.REFUSED if isinstance(error, (Forbidden, Refused)) else Answer.LATER
    return CallAnswer(outcome, str(error))
