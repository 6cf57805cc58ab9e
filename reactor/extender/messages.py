"""What kube-scheduler sends and gets (k8s.io/kube-scheduler/extender/v1). Go writes these names in PascalCase."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from reactor.cluster.records import Owner, Pod
from reactor.errors import InputError

MOST_NODES = 100_000


class _Reference(Struct, gc=False):
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None


class _Meta(Struct, rename="camel", gc=False):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    owner_references: list[_Reference] | None = None


class _Spec(Struct, rename="camel", gc=False):
    host_network: bool | None = None


class _WirePod(Struct, gc=False):
    metadata: _Meta
    spec: _Spec | None = None


class _Arguments(Struct, rename="pascal", gc=False):
    pod: _WirePod | None = None
    node_names: list[str] | None = None
    nodes: msgspec.Raw | None = None


_ARGUMENTS = msgspec.json.Decoder(_Arguments)


class Question(Struct, frozen=True, gc=False):
    """Which of these nodes for this pod?"""

    pod: Pod
    nodes: list[str]


class HostPriority(Struct, frozen=True, rename="pascal", gc=False):
    host: str
    score: int


class FilterResult(Struct, frozen=True, rename="pascal", gc=False):
    node_names: list[str]
    failed_nodes: dict[str, str] = {}
    error: str = ""


def parse_question(body: bytes) -> Question:
    """Raises InputError with the field that is wrong."""
    try:
        found = _ARGUMENTS.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"not the ExtenderArgs of kube-scheduler: {error}") from error
    if found.pod is None:
        raise InputError("Pod: is missing; kube-scheduler sends the pod that it places")
    if found.node_names is None:
        raise InputError("NodeNames: is missing; set nodeCacheCapable: true for this extender")
    if len(found.node_names) > MOST_NODES:
        raise InputError(f"NodeNames: has {len(found.node_names)} names; at most {MOST_NODES} are answered")
    return Question(_pod(found.pod), found.node_names)


def _pod(wire: _WirePod) -> Pod:
    meta = wire.metadata
    owner = next((each for each in meta.owner_references or () if each.controller), None)
    return Pod(
        uid=meta.uid,
        namespace=meta.namespace,
        name=meta.name,
        resource_version="",
        labels=meta.labels or {},
        annotations=meta.annotations or {},
        created=0.0,
        owner=None if owner is None else Owner(owner.kind, owner.name, owner.uid),
        host_network=wire.spec is not None and bool(wire.spec.host_network),
    )
