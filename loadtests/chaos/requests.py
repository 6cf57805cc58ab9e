"""What a request of the controller is for: faults aim at steps, not at paths."""

from __future__ import annotations

import re
from enum import StrEnum


class Step(StrEnum):
    """Groups of requests. The writes among them are the steps of a move, the journal's and the leader's."""

    EVICT = "evict"
    BIND = "bind"
    OWNER = "owner"
    """`replicas` of a workload."""
    POD = "pod"
    """Labels, annotations or the condition of a pod."""
    POD_DELETE = "pod-delete"
    HINT = "hint"
    JOURNAL = "journal"
    STATE = "state"
    LEASE = "lease"
    EVENT = "event"
    CANARY = "canary"
    """The steering's own ReplicaSet and its pods, in our namespace."""
    OTHER_WRITE = "other-write"
    LIST = "list"
    WATCH = "watch"
    READ = "read"


MOVING = frozenset({Step.EVICT, Step.OWNER, Step.POD, Step.POD_DELETE, Step.HINT})
"""They change what users see."""
WRITES = MOVING | {Step.BIND, Step.JOURNAL, Step.STATE, Step.LEASE}
"""Without Events: nobody relies on one."""

HOME = "rematch"
"""The controllers' namespace."""
_PATH = re.compile(
    r"^/(?:api/v1|apis/(?P<group>[^/]+)/[^/]+)"
    r"(?:/namespaces/(?P<namespace>[^/]+)(?=/[^/]+))?"
    r"/(?P<resource>[^/]+)(?:/(?P<name>[^/]+))?(?:/(?P<sub>.+))?$"
)
_OWNERS = frozenset({"deployments", "replicasets", "statefulsets"})
_BY_RESOURCE = {
    "placementhints": Step.HINT,
    "moves": Step.JOURNAL,
    "requests": Step.JOURNAL,
    "configmaps": Step.STATE,
    "leases": Step.LEASE,
    "events": Step.EVENT,
}


def step_of(method: str, path: str, *, watch: bool = False) -> Step:
    found = _PATH.match(path)
    if method == "GET":
        return Step.WATCH if watch else Step.LIST if found and not found["name"] else Step.READ
    if found is None:
        return Step.OTHER_WRITE
    return write_step(method, found["namespace"] or "", found["resource"], found["sub"] or "")


def write_step(method: str, namespace: str, resource: str, subresource: str) -> Step:
    """`method` as in HTTP, or the verb of an audit event."""
    if namespace == HOME and resource in {"pods", *_OWNERS}:
        return Step.CANARY
    if resource == "pods":
        by_subresource = {"eviction": Step.EVICT, "binding": Step.BIND}
        if method.upper() == "DELETE":
            return Step.POD_DELETE
        return by_subresource.get(subresource, Step.POD)
    if resource in _OWNERS:
        return Step.OWNER
    return _BY_RESOURCE.get(resource, Step.OTHER_WRITE)
