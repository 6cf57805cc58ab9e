"""What has to be a string, a list or a number in the objects that we act upon; fields not named here are free.

A wrong type is refused at the door (400), so that no controller ever trips over it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec
from msgspec import Struct

from loadtests.embedded.api_errors import ApiError, Details, bad_request
from loadtests.embedded.resources import (
    CONFIGMAPS,
    DAEMONSETS,
    DEPLOYMENTS,
    EVENTS,
    JOBS,
    LEASES,
    MOVES,
    NODES,
    PODDISRUPTIONBUDGETS,
    PODS,
    PRIORITYCLASSES,
    REPLICASETS,
    REQUESTS,
    STATEFULSETS,
    Json,
    Resource,
)

Strings = dict[str, str]
Quantities = dict[str, str | int | float]
_DEEPEST = 100


class OwnerShape(Struct):
    apiVersion: str  # noqa: N815
    kind: str
    name: str
    uid: str
    controller: bool | None = None


class MetadataShape(Struct):
    name: str = ""
    generateName: str = ""  # noqa: N815
    namespace: str = ""
    uid: str = ""
    resourceVersion: str = ""  # noqa: N815
    labels: Strings | None = None
    annotations: Strings | None = None
    finalizers: list[str] | None = None
    ownerReferences: list[OwnerShape] | None = None  # noqa: N815


class ResourcesShape(Struct):
    requests: Quantities | None = None
    limits: Quantities | None = None


class ContainerShape(Struct):
    name: str = ""
    image: str = ""
    restartPolicy: str = ""  # noqa: N815
    resources: ResourcesShape | None = None
    ports: list[Json] | None = None
    livenessProbe: Json | None = None  # noqa: N815
    readinessProbe: Json | None = None  # noqa: N815
    startupProbe: Json | None = None  # noqa: N815


class TolerationShape(Struct):
    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""


class PodSpecShape(Struct):
    containers: list[ContainerShape] | None = None
    initContainers: list[ContainerShape] | None = None  # noqa: N815
    nodeName: str = ""  # noqa: N815
    schedulerName: str = ""  # noqa: N815
    priorityClassName: str = ""  # noqa: N815
    nodeSelector: Strings | None = None  # noqa: N815
    tolerations: list[TolerationShape] | None = None
    overhead: Quantities | None = None
    terminationGracePeriodSeconds: int | None = None  # noqa: N815
    schedulingGates: list[Json] | None = None  # noqa: N815
    affinity: dict[str, Json] | None = None


class ConditionShape(Struct):
    type: str
    status: str


class StatusShape(Struct):
    phase: str = ""
    conditions: list[ConditionShape] | None = None
    containerStatuses: list[Json] | None = None  # noqa: N815
    allocatable: Quantities | None = None
    capacity: Quantities | None = None
    addresses: list[Json] | None = None
    nodeInfo: Json | None = None  # noqa: N815


class PodShape(Struct):
    metadata: MetadataShape
    spec: PodSpecShape | None = None
    status: StatusShape | None = None


class TaintShape(Struct):
    key: str
    effect: str
    value: str = ""


class NodeSpecShape(Struct):
    unschedulable: bool | None = None
    taints: list[TaintShape] | None = None


class NodeShape(Struct):
    metadata: MetadataShape
    spec: NodeSpecShape | None = None
    status: StatusShape | None = None


class ExpressionShape(Struct):
    key: str
    operator: str
    values: list[str] | None = None


class SelectorShape(Struct):
    matchLabels: Strings | None = None  # noqa: N815
    matchExpressions: list[ExpressionShape] | None = None  # noqa: N815


class TemplateMetadataShape(Struct):
    labels: Strings | None = None
    annotations: Strings | None = None


class TemplateShape(Struct):
    metadata: TemplateMetadataShape | None = None
    spec: PodSpecShape | None = None


class WorkloadSpecShape(Struct):
    replicas: int | None = None
    minReadySeconds: int | None = None  # noqa: N815
    selector: SelectorShape | None = None
    template: TemplateShape | None = None
    strategy: Json | None = None


class WorkloadShape(Struct):
    metadata: MetadataShape
    spec: WorkloadSpecShape | None = None
    status: StatusShape | None = None


class BudgetSpecShape(Struct):
    minAvailable: int | str | None = None  # noqa: N815
    maxUnavailable: int | str | None = None  # noqa: N815
    selector: SelectorShape | None = None
    unhealthyPodEvictionPolicy: str | None = None  # noqa: N815


class BudgetShape(Struct):
    metadata: MetadataShape
    spec: BudgetSpecShape | None = None
    status: StatusShape | None = None


class ReferenceShape(Struct):
    kind: str = ""
    name: str = ""
    namespace: str = ""


class EventShape(Struct):
    metadata: MetadataShape
    involvedObject: ReferenceShape | None = None  # noqa: N815
    count: int | None = None
    reason: str = ""
    type: str = ""
    message: str = ""
    source: Json | None = None


class ConfigMapShape(Struct):
    metadata: MetadataShape
    data: Strings | None = None


class PriorityClassShape(Struct):
    metadata: MetadataShape
    value: int


class LeaseShape(Struct):
    metadata: MetadataShape
    spec: Json | None = None


class MoveSpecShape(Struct, rename={"source": "from"}):
    version: int
    readableBy: int  # noqa: N815
    pod: str
    move: Json
    epoch: int = 0
    source: str = ""
    to: str = ""
    strategy: str = ""
    state: str = ""
    reason: str = ""


class MoveShape(Struct):
    metadata: MetadataShape
    spec: MoveSpecShape


class RequestedMoveShape(Struct):
    pod: str
    to: str
    uid: str = ""


class RequestSpecShape(Struct):
    action: Literal["pause", "resume", "move", "apply"]
    reason: str = ""
    moves: list[RequestedMoveShape] | None = None


class RequestStatusShape(Struct):
    state: Literal["accepted", "done", "failed"] = "accepted"
    message: str = ""
    leader: str = ""
    moves: list[Json] | None = None


class RequestShape(Struct):
    metadata: MetadataShape
    spec: RequestSpecShape
    status: RequestStatusShape | None = None


class AnyShape(Struct):
    metadata: MetadataShape
    spec: Json | None = None
    status: Json | None = None


_SHAPES: Mapping[Resource, type[Struct]] = {
    PODS: PodShape,
    NODES: NodeShape,
    DEPLOYMENTS: WorkloadShape,
    REPLICASETS: WorkloadShape,
    STATEFULSETS: WorkloadShape,
    DAEMONSETS: WorkloadShape,
    JOBS: WorkloadShape,
    PODDISRUPTIONBUDGETS: BudgetShape,
    EVENTS: EventShape,
    CONFIGMAPS: ConfigMapShape,
    PRIORITYCLASSES: PriorityClassShape,
    LEASES: LeaseShape,
    MOVES: MoveShape,
    REQUESTS: RequestShape,
}


def checked(resource: Resource, body: Any) -> Json:
    """The body as an object of this kind, without its nulls (a Go server drops them, too)."""
    if not isinstance(body, dict):
        raise bad_request(f"the object provided is unrecognized: expected a JSON object of kind {resource.kind}")
    if resource.custom and not (body.get("kind") and body.get("apiVersion")):
        raise bad_request("the object provided is unrecognized: Object 'Kind' is missing")
    kind, api_version = body.get("kind", resource.kind), body.get("apiVersion", resource.api_version)
    if api_version != resource.api_version:
        raise bad_request(
            f"the API version in the data ({api_version}) does not match the expected API version"
            f" ({resource.api_version})"
        )
    unfit = f'{kind} in version "{resource.version}" cannot be handled as a {resource.kind}'
    if kind != resource.kind:
        raise bad_request(unfit)
    obj: Json = without_nulls(body)
    obj.setdefault("metadata", {})
    try:
        msgspec.convert(obj, _SHAPES.get(resource, AnyShape))
    except msgspec.ValidationError as error:
        if resource.custom:  # the schema of its definition, not the decoder, finds it
            details = Details(name=str(obj["metadata"].get("name", "")), group=resource.group, kind=resource.kind)
            raise ApiError(422, "Invalid", f"{resource.kind} is invalid: {error}", details) from error
        raise bad_request(f"{unfit}: {error}") from error
    return obj


def without_nulls(value: Any, depth: int = 0) -> Any:
    if depth > _DEEPEST:
        raise bad_request(f"the object is nested more than {_DEEPEST} levels deep")
    if isinstance(value, dict):
        return {key: without_nulls(item, depth + 1) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [without_nulls(item, depth + 1) for item in value]
    return value
