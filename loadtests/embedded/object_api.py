"""Create, read, update and delete with the rules of the API; HTTP handlers and controllers both go through here."""

from __future__ import annotations

import random
import uuid
from typing import Any

from loadtests.embedded import defaults, shapes, validation
from loadtests.embedded.api_errors import ApiError, bad_request, conflict, forbidden, invalid, not_found, stale
from loadtests.embedded.objects import (
    controller_of,
    is_deleting,
    name_of,
    namespace_of,
    random_suffix,
    spec_of,
    timestamp,
    with_metadata,
)
from loadtests.embedded.resources import NAMESPACES, PODS, PRIORITYCLASSES, Json, Resource
from loadtests.embedded.store import ObjectStore
from loadtests.embedded.validation import invalid_value
from reactor.clock import Clock

_SET_BY_SERVER = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation")
_NOT_ON_CREATE = (*_SET_BY_SERVER, "managedFields", "selfLink")


class ObjectApi:
    def __init__(self, store: ObjectStore, clock: Clock, rng: random.Random) -> None:
        self.store = store
        self.clock = clock
        self.rng = rng

    def get(self, resource: Resource, namespace: str, name: str) -> Json:
        return self.store.get(resource, namespace, name).obj

    def create(self, resource: Resource, body: Any, *, namespace: str = "", dry_run: bool = False) -> Json:
        """Stores a new object; `namespace` is the one of the request, the object's own has to agree with it."""
        obj = shapes.checked(resource, body)
        obj = with_metadata(obj, **self._new_metadata(resource, obj["metadata"], namespace))
        obj = defaults.with_defaults(resource, obj)
        self._refuse_invalid(resource, obj, None)
        if resource.drops_status_on_create:
            obj = _with_status(resource, obj, defaults.initial_status(resource, obj))
        if resource is PODS:
            obj = defaults.with_pod_admission(obj, self._priority(obj))
        if dry_run:
            return obj
        return self.store.create(resource, obj).obj

    def update(self, resource: Resource, body: Any, *, dry_run: bool = False, manager: str | None = None) -> Json:
        """Replaces an object but for its status; a `resourceVersion` or `uid` in it is a precondition. Of the field
        managers only that of replicas is kept, and only where it was named."""
        new = shapes.checked(resource, body)
        old = self._guarded(resource, new)
        merged = {**new, "metadata": _kept_metadata(new["metadata"], old["metadata"])}
        if resource.has_status:
            merged = _with_status(resource, merged, old.get("status", {}))
        merged = defaults.with_defaults(resource, merged)
        self._refuse_invalid(resource, merged, old)
        if resource.has_generation and merged.get("spec") != old.get("spec"):
            merged = with_metadata(merged, generation=old["metadata"].get("generation", 0) + 1)
            if "scale" in resource.subresources and spec_of(merged).get("replicas") != spec_of(old).get("replicas"):
                merged = with_metadata(merged, managedFields=None if manager is None else [_of_replicas(manager)])
        return self._replace(resource, merged, old, dry_run)

    def update_status(self, resource: Resource, body: Any, *, dry_run: bool = False) -> Json:
        """Replaces the status alone (pods and nodes: labels and annotations, too, as the real server does)."""
        new = shapes.checked(resource, body)
        old = self._guarded(resource, new)
        merged = {**old, "status": new.get("status", {})}
        if not resource.keeps_metadata_on_status:
            named = new["metadata"]
            merged = with_metadata(merged, labels=named.get("labels"), annotations=named.get("annotations"))
        return self._replace(resource, merged, old, dry_run)

    def _replace(self, resource: Resource, merged: Json, old: Json, dry_run: bool) -> Json:
        merged = {**merged, "apiVersion": resource.api_version, "kind": resource.kind}
        if merged == old or dry_run:
            return merged
        metadata = merged["metadata"]
        last_finalizer_gone = is_deleting(old) and old["metadata"].get("finalizers") and not metadata.get("finalizers")
        if last_finalizer_gone and not metadata.get("deletionGracePeriodSeconds"):
            return self.store.remove(resource, namespace_of(old), name_of(old)).obj
        return self.store.replace(resource, merged).obj

    def _guarded(self, resource: Resource, new: Json) -> Json:
        """The stored object, once the preconditions in the new one hold."""
        metadata = new["metadata"]
        name, version, uid = metadata.get("name", ""), metadata.get("resourceVersion"), metadata.get("uid")
        old = self.store.get(resource, metadata.get("namespace", ""), name).obj
        if uid and uid != old["metadata"]["uid"]:
            raise conflict(resource.plural, resource.group, name, _uid_mismatch(resource, old, uid))
        if not version and resource.update_needs_version:
            cause = invalid_value("metadata.resourceVersion", 0, "must be specified for an update")
            raise invalid(resource.plural, resource.group, name, [cause])
        if version and version != old["metadata"]["resourceVersion"]:
            raise stale(resource, name)
        return old

    def _new_metadata(self, resource: Resource, metadata: Json, namespace: str) -> Json:
        if metadata.get("resourceVersion"):
            raise ApiError(500, "", "resourceVersion should not be set on objects to be created")
        filled: Json = dict.fromkeys(_NOT_ON_CREATE)
        filled["namespace"] = self._namespace(resource, metadata, namespace)
        if not metadata.get("name") and metadata.get("generateName"):
            filled["name"] = f"{metadata['generateName']}{random_suffix(self.rng)}"
        filled["uid"] = str(uuid.UUID(int=self.rng.getrandbits(128), version=4))
        filled["creationTimestamp"] = timestamp(self.clock.now())
        if resource.has_generation:
            filled["generation"] = 1
        return filled

    def _namespace(self, resource: Resource, metadata: Json, namespace: str) -> str | None:
        if not resource.namespaced:
            return None
        stated = metadata.get("namespace", "")
        if namespace and stated and stated != namespace:
            raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
        wanted: str = namespace or stated or "default"
        found = self.store.find(NAMESPACES, "", wanted)
        if found is None:
            raise not_found(NAMESPACES, wanted)
        if is_deleting(found.obj):
            why = f"unable to create new content in namespace {wanted} because it is being terminated"
            raise forbidden(resource, metadata.get("name", ""), why)
        return wanted

    def _priority(self, pod: Json) -> int:
        wanted = pod["spec"].get("priorityClassName")
        if wanted:
            known = self.store.find(PRIORITYCLASSES, "", wanted)
            if known is None:
                raise forbidden(PODS, name_of(pod), f"no PriorityClass with name {wanted} was found")
            return int(known.obj["value"])
        classes = (stored.obj for stored in self.store.all(PRIORITYCLASSES))
        return next((int(known["value"]) for known in classes if known.get("globalDefault")), 0)

    def _refuse_invalid(self, resource: Resource, obj: Json, old: Json | None) -> None:
        causes = validation.problems(resource, obj, old)
        if causes:
            raise invalid(resource.kind, resource.group, name_of(obj), causes)

    def live_controller(self, obj: Json, resource: Resource) -> Json | None:
        """The object that controls this one, when it is of that kind and still the same one."""
        reference = controller_of(obj)
        if reference is None or reference["kind"] != resource.kind:
            return None
        owner = self.store.find(resource, namespace_of(obj), reference["name"])
        return owner.obj if owner is not None and owner.obj["metadata"]["uid"] == reference["uid"] else None


def _with_status(resource: Resource, obj: Json, status: Json | None) -> Json:
    """A custom object has no status until somebody writes one."""
    if resource.custom and not status:
        return {key: value for key, value in obj.items() if key != "status"}
    return {**obj, "status": status}


def _kept_metadata(new: Json, old: Json) -> Json:
    kept = {key: old[key] for key in (*_SET_BY_SERVER, "managedFields", "resourceVersion", "namespace") if key in old}
    return {**{key: value for key, value in new.items() if key not in _NOT_ON_CREATE}, **kept}


def _of_replicas(manager: str) -> Json:
    fields: Json = {"f:spec": {"f:replicas": {}}}
    return {"manager": manager, "operation": "Update", "fieldsType": "FieldsV1", "fieldsV1": fields}


def _uid_mismatch(resource: Resource, old: Json, uid: str) -> str:
    key = "/".join(part for part in (resource.plural, namespace_of(old), name_of(old)) if part)
    return (
        f"StorageError: invalid object, Code: 4, Key: /registry/{key}, ResourceVersion: 0, AdditionalErrorMsg: "
        f"Precondition failed: UID in precondition: {uid}, UID in object meta: {old['metadata']['uid']}"
    )
