"""ReplicaSet -> pods: adopts, releases, creates and deletes them; the real controller's order of deletion."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable

from loadtests.embedded.controllers.shared import OwnerIndex, WorkQueue
from loadtests.embedded.deletion import delete
from loadtests.embedded.event_recorder import EventRecorder
from loadtests.embedded.object_api import ObjectApi
from loadtests.embedded.objects import (
    annotations_of,
    changed,
    condition_of,
    controller_of,
    is_active,
    is_deleting,
    is_ready,
    labels_of,
    name_of,
    namespace_of,
    owner_reference,
    seconds,
    status_of,
    uid_of,
    with_metadata,
)
from loadtests.embedded.resources import PODS, REPLICASETS, Json
from loadtests.embedded.selectors import selector_of
from loadtests.embedded.store import Change, Key

DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}

Rank = tuple[object, ...]


def in_deletion_order(pods: Iterable[Json], related: Iterable[Json], now: float) -> list[Json]:
    """`related` are the pods of all replica sets of the same owner: the more of them share a node, the sooner."""
    on_node = Counter(pod["spec"].get("nodeName", "") for pod in related if is_active(pod))
    return sorted(pods, key=lambda pod: _rank(pod, on_node, now))


def _rank(pod: Json, on_node: Counter[str], now: float) -> Rank:
    node, ready = pod["spec"].get("nodeName", ""), is_ready(pod)
    return (
        bool(node),
        _PHASES.get(status_of(pod).get("phase", ""), 1),
        ready,
        deletion_cost(pod),
        -on_node[node],
        _age_bucket(_ready_since(pod), now) if ready else 0,
        -_most_restarts(pod),
        _age_bucket(seconds(pod["metadata"].get("creationTimestamp")), now),
        uid_of(pod),
    )


def deletion_cost(pod: Json) -> int:
    try:
        return int(annotations_of(pod).get(DELETION_COST, "0"))
    except ValueError:
        return 0


def _ready_since(pod: Json) -> float:
    return seconds((condition_of(pod, "Ready") or {}).get("lastTransitionTime"))


def _age_bucket(since: float, now: float) -> int:
    """Ages count by their order of magnitude (of nanoseconds), so that one zone's pods are not always the newest."""
    age = (now - since) * 1e9
    return int(math.log2(age)) if age > 0 else -1


def _most_restarts(pod: Json) -> int:
    return max((known.get("restartCount", 0) for known in status_of(pod).get("containerStatuses") or ()), default=0)


class ReplicaSetController:
    def __init__(self, api: ObjectApi, owners: OwnerIndex) -> None:
        self._api = api
        self._owners = owners
        self._events = EventRecorder(api, "replicaset-controller")
        self.queue: WorkQueue[Key] = WorkQueue(self.reconcile)
        api.store.observe(self._notice)

    def _notice(self, change: Change) -> None:
        if change.resource is REPLICASETS:
            self.queue.add(change.new.key)
        elif change.resource is PODS:
            for stored in (change.old, change.new):
                if stored is not None:
                    self._queue_owner_of(stored.obj)

    def _queue_owner_of(self, pod: Json) -> None:
        reference = controller_of(pod)
        if reference is not None:
            if reference["kind"] == REPLICASETS.kind:
                self.queue.add((namespace_of(pod), reference["name"]))
            return
        for stored in self._api.store.all(REPLICASETS, namespace_of(pod)):
            if selector_of(stored.obj["spec"]["selector"])(labels_of(pod)):
                self.queue.add(stored.key)

    def reconcile(self, key: Key) -> None:
        found = self._api.store.find(REPLICASETS, *key)
        if found is None:
            return
        replica_set = found.obj
        pods = self._claimed(replica_set)
        if not is_deleting(replica_set):
            pods = self._scaled(replica_set, pods)
        self._write_status(replica_set, pods)

    def _claimed(self, replica_set: Json) -> list[Json]:
        """Its active pods, after releasing those that no longer match and adopting orphans that do."""
        matches = selector_of(replica_set["spec"]["selector"])
        mine: list[Json] = []
        for pod in self._owners.objects(uid_of(replica_set), PODS):
            if not matches(labels_of(pod)):
                self._release(replica_set, pod)
            elif is_active(pod):
                mine.append(pod)
        if is_deleting(replica_set):
            return mine
        reference = owner_reference(REPLICASETS.api_version, REPLICASETS.kind, replica_set)
        orphans = [pod for pod in self._orphans(replica_set) if matches(labels_of(pod))]
        adopted = [self._api.update(PODS, with_metadata(pod, ownerReferences=[reference])) for pod in orphans]
        return [*mine, *adopted]

    def _orphans(self, replica_set: Json) -> list[Json]:
        namespace = namespace_of(replica_set)
        return [pod for pod in self._owners.unowned(PODS) if namespace_of(pod) == namespace and is_active(pod)]

    def _release(self, replica_set: Json, pod: Json) -> None:
        references = [entry for entry in pod["metadata"]["ownerReferences"] if entry["uid"] != uid_of(replica_set)]
        self._api.update(PODS, with_metadata(pod, ownerReferences=references or None))

    def _scaled(self, replica_set: Json, pods: list[Json]) -> list[Json]:
        surplus = len(pods) - replica_set["spec"]["replicas"]
        if surplus < 0:
            return [*pods, *(self._create_pod(replica_set) for _ in range(-surplus))]
        if surplus == 0:
            return pods
        ordered = in_deletion_order(pods, self._related(replica_set, pods), self._api.clock.now())
        for pod in ordered[:surplus]:
            delete(self._api, PODS, namespace_of(pod), name_of(pod))
            self._events.record(replica_set, "SuccessfulDelete", f"Deleted pod: {name_of(pod)}")
        return ordered[surplus:]

    def _related(self, replica_set: Json, pods: list[Json]) -> list[Json]:
        owner = controller_of(replica_set)
        if owner is None:
            return pods
        siblings = self._owners.objects(owner["uid"], REPLICASETS)
        return [pod for sibling in siblings for pod in self._owners.objects(uid_of(sibling), PODS)]

    def _create_pod(self, replica_set: Json) -> Json:
        template = replica_set["spec"]["template"]
        given = template.get("metadata") or {}
        metadata = {key: given[key] for key in ("labels", "annotations", "finalizers") if given.get(key)}
        metadata["generateName"] = f"{name_of(replica_set)}-"
        metadata["namespace"] = namespace_of(replica_set)
        metadata["ownerReferences"] = [owner_reference(REPLICASETS.api_version, REPLICASETS.kind, replica_set)]
        pod = self._api.create(PODS, {"metadata": metadata, "spec": template["spec"]})
        self._events.record(replica_set, "SuccessfulCreate", f"Created pod: {name_of(pod)}")
        return pod

    def _write_status(self, replica_set: Json, pods: list[Json]) -> None:
        template_labels = (replica_set["spec"]["template"].get("metadata") or {}).get("labels") or {}
        ready = [pod for pod in pods if is_ready(pod)]
        counts = {
            "fullyLabeledReplicas": sum(template_labels.items() <= labels_of(pod).items() for pod in pods),
            "readyReplicas": len(ready),
            "availableReplicas": sum(self._is_available(pod, replica_set) for pod in ready),
        }
        status = {
            "replicas": len(pods),
            **{name: count for name, count in counts.items() if count},
            "observedGeneration": replica_set["metadata"]["generation"],
        }
        current = self._api.store.find(REPLICASETS, namespace_of(replica_set), name_of(replica_set))
        if current is not None and status_of(current.obj) != status:
            self._api.update_status(REPLICASETS, changed(current.obj, status=status))

    def _is_available(self, pod: Json, replica_set: Json) -> bool:
        """Ready for minReadySeconds; looked at again when that time is over."""
        wanted = replica_set["spec"].get("minReadySeconds", 0)
        if not wanted:
            return True
        since = seconds((condition_of(pod, "Ready") or {}).get("lastTransitionTime"))
        left: float = since + wanted - self._api.clock.now()
        if left > 0:
            self.queue.add_after((namespace_of(replica_set), name_of(replica_set)), left)
        return left <= 0
