"""Garbage collection: dependents of deleted owners, the content of namespaces, pods of deleted nodes."""

from __future__ import annotations

from loadtests.embedded.controllers.shared import Dependent, OwnerIndex, WorkQueue
from loadtests.embedded.deletion import FOREGROUND_FINALIZER, ORPHAN_FINALIZER, DeleteOptions, delete
from loadtests.embedded.object_api import ObjectApi
from loadtests.embedded.objects import is_deleting, name_of, namespace_of, uid_of, with_metadata
from loadtests.embedded.resources import NAMESPACES, NODES, PODS, STORED, Json, of_kind
from loadtests.embedded.store import Change, ChangeType


class GarbageCollector:
    """Deletes objects whose owners are all gone, and finishes foreground and orphaning deletions."""

    def __init__(self, api: ObjectApi, owners: OwnerIndex) -> None:
        self._api = api
        self._owners = owners
        self.queue: WorkQueue[Dependent] = WorkQueue(self.reconcile)
        api.store.observe(self._notice)

    def _notice(self, change: Change) -> None:
        metadata = change.new.obj["metadata"]
        if change.type is ChangeType.DELETED:
            for dependent in self._owners.dependents(metadata["uid"]):
                self.queue.add(dependent)
            for reference in metadata.get("ownerReferences") or ():
                resource = of_kind(reference["apiVersion"], reference["kind"])
                if resource is not None:
                    self.queue.add((resource, (change.new.key[0] if resource.namespaced else "", reference["name"])))
        elif is_deleting(change.new.obj) or (change.old is None and metadata.get("ownerReferences")):
            self.queue.add((change.resource, change.new.key))

    def reconcile(self, key: Dependent) -> None:
        resource, (namespace, name) = key
        found = self._api.store.find(resource, namespace, name)
        if found is None:
            return
        obj = found.obj
        finalizers = obj["metadata"].get("finalizers") or ()
        if is_deleting(obj) and FOREGROUND_FINALIZER in finalizers:
            self._finish_foreground(key, obj)
        elif is_deleting(obj) and ORPHAN_FINALIZER in finalizers:
            self._finish_orphaning(key, obj)
        elif not is_deleting(obj) and self._is_abandoned(obj):
            delete(self._api, resource, namespace, name, DeleteOptions(uid=uid_of(obj)))

    def _is_abandoned(self, obj: Json) -> bool:
        references = obj["metadata"].get("ownerReferences") or ()
        return bool(references) and not any(self._is_alive(entry, namespace_of(obj)) for entry in references)

    def _is_alive(self, reference: Json, namespace: str) -> bool:
        resource = of_kind(reference["apiVersion"], reference["kind"])
        if resource is None:
            return True  # a kind that is not served here cannot be judged
        owner = self._api.store.find(resource, namespace if resource.namespaced else "", reference["name"])
        return owner is not None and uid_of(owner.obj) == reference["uid"]

    def _finish_foreground(self, key: Dependent, obj: Json) -> None:
        dependents = self._owners.dependents(uid_of(obj))
        for resource, (namespace, name) in dependents:
            found = self._api.store.find(resource, namespace, name)
            if found is not None and not is_deleting(found.obj):
                delete(self._api, resource, namespace, name)
        if not self._owners.dependents(uid_of(obj)):
            self._drop_finalizer(key, FOREGROUND_FINALIZER)

    def _finish_orphaning(self, key: Dependent, obj: Json) -> None:
        for resource, (namespace, name) in self._owners.dependents(uid_of(obj)):
            dependent = self._api.get(resource, namespace, name)
            kept = [entry for entry in dependent["metadata"]["ownerReferences"] if entry["uid"] != uid_of(obj)]
            self._api.update(resource, with_metadata(dependent, ownerReferences=kept or None))
        self._drop_finalizer(key, ORPHAN_FINALIZER)

    def _drop_finalizer(self, key: Dependent, finalizer: str) -> None:
        resource, (namespace, name) = key
        obj = self._api.get(resource, namespace, name)
        kept = [known for known in obj["metadata"].get("finalizers") or () if known != finalizer]
        self._api.update(resource, with_metadata(obj, finalizers=kept or None))


class NamespaceController:
    """Empties a namespace that is being deleted, then lets it go."""

    def __init__(self, api: ObjectApi) -> None:
        self._api = api
        self.queue: WorkQueue[str] = WorkQueue(self.reconcile)
        api.store.observe(self._notice)

    def _notice(self, change: Change) -> None:
        if change.resource is NAMESPACES:
            self.queue.add(change.new.key[1])
        elif change.type is ChangeType.DELETED and change.new.key[0]:
            self.queue.add(change.new.key[0])

    def reconcile(self, name: str) -> None:
        found = self._api.store.find(NAMESPACES, "", name)
        if found is None or not is_deleting(found.obj):
            return
        content = [(kind, stored) for kind in STORED if kind.namespaced for stored in self._api.store.all(kind, name)]
        for kind, stored in content:
            if not is_deleting(stored.obj):
                delete(self._api, kind, *stored.key)
        if not any(self._api.store.all(kind, name) for kind in STORED if kind.namespaced):
            self._api.store.remove(NAMESPACES, "", name)


class PodCollector:
    """A pod whose node is gone has no kubelet to end it: when it has to go, it goes at once."""

    def __init__(self, api: ObjectApi) -> None:
        self._api = api
        self.queue: WorkQueue[tuple[str, str]] = WorkQueue(self.reconcile)
        self._lost: set[str] = set()
        api.store.observe(self._notice)

    def _notice(self, change: Change) -> None:
        if change.resource is NODES:
            if change.type is ChangeType.DELETED:
                self._queue_pods_of(name_of(change.new.obj))
        elif change.resource is PODS and change.type is ChangeType.MODIFIED and is_deleting(change.new.obj):
            self.queue.add(change.new.key)

    def _queue_pods_of(self, node: str) -> None:
        for stored in self._api.store.all(PODS):
            if stored.obj["spec"].get("nodeName") == node:
                self._lost.add(uid_of(stored.obj))
                self.queue.add(stored.key)

    def reconcile(self, key: tuple[str, str]) -> None:
        found = self._api.store.find(PODS, *key)
        if found is None:
            return
        pod = found.obj
        was_lost = uid_of(pod) in self._lost
        self._lost.discard(uid_of(pod))
        has_node = self._api.store.find(NODES, "", pod["spec"].get("nodeName", "")) is not None
        if not has_node and (was_lost or is_deleting(pod)):
            delete(self._api, PODS, *key, DeleteOptions(grace_seconds=0, uid=uid_of(pod)))
