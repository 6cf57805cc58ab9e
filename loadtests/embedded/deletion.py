"""Deleting: preconditions, the grace that pods get, and what happens to dependents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from loadtests.embedded.api_errors import StatusCause, bad_request, conflict, invalid
from loadtests.embedded.object_api import ObjectApi
from loadtests.embedded.objects import (
    is_deleting,
    is_finished,
    name_of,
    namespace_of,
    seconds,
    timestamp,
    with_metadata,
)
from loadtests.embedded.resources import NAMESPACES, PODS, Json, Resource

ORPHAN_FINALIZER = "orphan"
FOREGROUND_FINALIZER = "foregroundDeletion"
_POLICIES = ("Background", "Foreground", "Orphan")


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    grace_seconds: int | None = None
    uid: str | None = None
    resource_version: str | None = None
    propagation: str | None = None
    dry_run: bool = False


AT_LEISURE = DeleteOptions()
"""No precondition, the grace that the pod itself states."""


class Deletion(NamedTuple):
    obj: Json
    gone: bool


def parse_options(body: Any) -> DeleteOptions:
    """A DeleteOptions object (or the same fields of a query string) as a value."""
    if not isinstance(body, dict):
        raise bad_request("the object provided is unrecognized: expected DeleteOptions")
    preconditions = body.get("preconditions") or {}
    grace, propagation = body.get("gracePeriodSeconds"), body.get("propagationPolicy")
    if not isinstance(preconditions, dict) or not isinstance(grace, int | None):
        raise bad_request("DeleteOptions: preconditions has to be an object and gracePeriodSeconds a number")
    if propagation is not None and propagation not in _POLICIES:
        why = f'Unsupported value: "{propagation}": supported values: {", ".join(_POLICIES)}'
        cause = StatusCause("FieldValueNotSupported", why, "propagationPolicy")
        raise invalid("DeleteOptions", "meta.k8s.io", "", [cause])
    if body.get("orphanDependents"):
        propagation = "Orphan"
    return DeleteOptions(
        grace_seconds=grace,
        uid=preconditions.get("uid"),
        resource_version=preconditions.get("resourceVersion"),
        propagation=propagation,
        dry_run=bool(body.get("dryRun")),
    )


def delete(
    api: ObjectApi, resource: Resource, namespace: str, name: str, options: DeleteOptions = AT_LEISURE
) -> Deletion:
    obj = api.get(resource, namespace, name)
    check_preconditions(resource.kind, resource.group, obj, options)
    if resource is not PODS:
        return _remove(api, resource, obj, options)
    grace = _pod_grace(obj, options)
    leaving = _marked(obj, grace, api.clock.now())
    if leaving is not obj and not options.dry_run:
        leaving = api.store.replace(PODS, leaving).obj
    return _remove(api, PODS, leaving, options) if grace == 0 else Deletion(leaving, gone=False)


def check_preconditions(what: str, group: str, obj: Json, options: DeleteOptions) -> None:
    """`what` is how the refusal names the object: its kind, as the real server does here."""
    metadata = obj["metadata"]
    if options.uid is not None and options.uid != metadata["uid"]:
        why = (
            f"the UID in the precondition ({options.uid}) does not match the UID in record ({metadata['uid']}). "
            "The object might have been deleted and then recreated"
        )
        raise conflict(what, group, metadata["name"], why)
    version = options.resource_version
    if version is not None and version != metadata["resourceVersion"]:
        why = (
            f"the ResourceVersion in the precondition ({version}) does not match the ResourceVersion in record "
            f"({metadata['resourceVersion']}). The object might have been modified"
        )
        raise conflict(what, group, metadata["name"], why)


def _pod_grace(pod: Json, options: DeleteOptions) -> int:
    if not pod["spec"].get("nodeName") or is_finished(pod):
        return 0
    metadata = pod["metadata"]
    asked = options.grace_seconds
    if is_deleting(pod):
        remaining = int(metadata.get("deletionGracePeriodSeconds", 0))
        return remaining if asked is None else min(remaining, asked if asked >= 0 else 1)
    if asked is None:
        asked = int(pod["spec"].get("terminationGracePeriodSeconds", 0))
    return asked if asked >= 0 else 1


def _marked(pod: Json, grace: int, now: float) -> Json:
    """The pod on its way out; the same one when it already is and the grace does not get shorter."""
    metadata = pod["metadata"]
    began, generation = now, metadata.get("generation", 0) + 1
    if is_deleting(pod):
        before = metadata.get("deletionGracePeriodSeconds", 0)
        if grace >= before:
            return pod
        began, generation = seconds(metadata["deletionTimestamp"]) - before, generation - 1
    return with_metadata(
        pod,
        deletionTimestamp=timestamp(max(now, began + grace)),
        deletionGracePeriodSeconds=grace,
        generation=generation,
    )


def _remove(api: ObjectApi, resource: Resource, obj: Json, options: DeleteOptions) -> Deletion:
    finalizers = [*(obj["metadata"].get("finalizers") or ())]
    added = {"Orphan": ORPHAN_FINALIZER, "Foreground": FOREGROUND_FINALIZER}.get(options.propagation or "")
    if added and added not in finalizers:
        finalizers.append(added)
    if options.dry_run:
        return Deletion(obj, gone=not finalizers)
    if not finalizers and resource is not NAMESPACES:
        return Deletion(api.store.remove(resource, namespace_of(obj), name_of(obj)).obj, gone=True)
    if is_deleting(obj) and finalizers == obj["metadata"].get("finalizers", []):
        return Deletion(obj, gone=False)
    leaving = with_metadata(
        obj,
        deletionTimestamp=obj["metadata"].get("deletionTimestamp") or timestamp(api.clock.now()),
        deletionGracePeriodSeconds=None if resource is NAMESPACES else 0,
        finalizers=finalizers or None,
    )
    if resource is NAMESPACES:
        leaving = {**leaving, "status": {**(obj.get("status") or {}), "phase": "Terminating"}}
    return Deletion(api.store.replace(resource, leaving).obj, gone=False)
