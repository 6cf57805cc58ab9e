"""Deployment -> ReplicaSets: one per pod template, rolled over within the strategy's limits."""

from __future__ import annotations

from loadtests.embedded.controllers.rollout import (
    HASH_LABEL,
    Count,
    limits_of,
    same_template,
    scale_down,
    scale_up,
    template_hash,
)
from loadtests.embedded.controllers.shared import OwnerIndex, WorkQueue
from loadtests.embedded.deletion import delete
from loadtests.embedded.event_recorder import EventRecorder
from loadtests.embedded.object_api import ObjectApi
from loadtests.embedded.objects import (
    annotations_of,
    changed,
    controller_of,
    is_deleting,
    name_of,
    namespace_of,
    owner_reference,
    status_of,
    timestamp,
    uid_of,
    with_condition,
    with_metadata,
)
from loadtests.embedded.resources import DEPLOYMENTS, PODS, REPLICASETS, Json
from loadtests.embedded.store import Change, ChangeType, Key

REVISION = "deployment.kubernetes.io/revision"


class DeploymentController:
    def __init__(self, api: ObjectApi, owners: OwnerIndex) -> None:
        self._api = api
        self._owners = owners
        self._events = EventRecorder(api, "deployment-controller")
        self.queue: WorkQueue[Key] = WorkQueue(self.reconcile)
        api.store.observe(self._notice)

    def _notice(self, change: Change) -> None:
        if change.resource is DEPLOYMENTS:
            self.queue.add(change.new.key)
        elif change.resource is REPLICASETS:
            self._queue_owner_of(change.new.obj)
        elif change.resource is PODS and change.type is ChangeType.DELETED:
            replica_set = self._api.live_controller(change.new.obj, REPLICASETS)
            if replica_set is not None:
                self._queue_owner_of(replica_set)

    def _queue_owner_of(self, replica_set: Json) -> None:
        reference = controller_of(replica_set)
        if reference is not None and reference["kind"] == DEPLOYMENTS.kind:
            self.queue.add((namespace_of(replica_set), reference["name"]))

    def reconcile(self, key: Key) -> None:
        found = self._api.store.find(DEPLOYMENTS, *key)
        if found is None or is_deleting(found.obj):
            return
        deployment = found.obj
        owned = sorted(self._owners.objects(uid_of(deployment), REPLICASETS), key=_revision)
        new = next((known for known in owned if same_template(known, deployment)), None)
        old = [known for known in owned if known is not new]
        if new is None and not deployment["spec"].get("paused"):
            new = self._create_replica_set(deployment, owned)
        if new is not None:
            new = self._with_revision(deployment, new, old)
            self._roll(deployment, new, old)
            self._forget_old(deployment, old)
        self._write_status(key, None if new is None else name_of(new))

    def _create_replica_set(self, deployment: Json, owned: list[Json]) -> Json:
        spec = deployment["spec"]
        template = spec["template"]
        label = template_hash(template)
        labels = {**(template.get("metadata") or {}).get("labels", {}), HASH_LABEL: label}
        selector = {
            **spec["selector"],
            "matchLabels": {**(spec["selector"].get("matchLabels") or {}), HASH_LABEL: label},
        }
        metadata = {
            "name": f"{name_of(deployment)}-{label}",
            "namespace": namespace_of(deployment),
            "labels": labels,
            "annotations": {REVISION: str(max(map(_revision, owned), default=0) + 1)},
            "ownerReferences": [owner_reference(DEPLOYMENTS.api_version, DEPLOYMENTS.kind, deployment)],
        }
        body = {
            "metadata": metadata,
            "spec": {
                "replicas": 0,
                "selector": selector,
                "template": {**template, "metadata": {**(template.get("metadata") or {}), "labels": labels}},
                **({"minReadySeconds": spec["minReadySeconds"]} if spec.get("minReadySeconds") else {}),
            },
        }
        return self._api.create(REPLICASETS, body)

    def _with_revision(self, deployment: Json, new: Json, old: list[Json]) -> Json:
        """A template that comes back (a rollback) becomes the latest revision."""
        newest = max(map(_revision, old), default=0)
        if _revision(new) <= newest:
            new = self._annotate(new, str(newest + 1))
        revision = annotations_of(new).get(REVISION, "1")
        if annotations_of(deployment).get(REVISION) != revision:
            known = {**annotations_of(deployment), REVISION: revision}
            self._api.update(DEPLOYMENTS, with_metadata(deployment, annotations=known))
        return new

    def _annotate(self, replica_set: Json, revision: str) -> Json:
        known = {**annotations_of(replica_set), REVISION: revision}
        return self._api.update(REPLICASETS, with_metadata(replica_set, annotations=known))

    def _roll(self, deployment: Json, new: Json, old: list[Json]) -> None:
        spec = deployment["spec"]
        counts, newest, replicas = [_count(known) for known in old], _count(new), spec["replicas"]
        standing = [known for known in old if known["spec"]["replicas"] or self._owners.objects(uid_of(known), PODS)]
        if not standing or spec.get("paused"):
            self._scale(deployment, new, replicas)
        elif spec["strategy"]["type"] == "Recreate":
            for known in old:
                self._scale(deployment, known, 0)
        else:
            limits = limits_of(spec)
            self._scale(deployment, new, scale_up(newest, counts, replicas, limits))
            targets = scale_down(newest, counts, replicas, limits)
            for known in old:
                self._scale(deployment, known, targets[name_of(known)])

    def _scale(self, deployment: Json, replica_set: Json, replicas: int) -> None:
        before = replica_set["spec"]["replicas"]
        if before == replicas:
            return
        self._api.update(REPLICASETS, changed(replica_set, spec={**replica_set["spec"], "replicas": replicas}))
        word = "up" if replicas > before else "down"
        message = f"Scaled {word} replica set {name_of(replica_set)} from {before} to {replicas}"
        self._events.record(deployment, "ScalingReplicaSet", message)

    def _forget_old(self, deployment: Json, old: list[Json]) -> None:
        idle = [known for known in old if not known["spec"]["replicas"] and not status_of(known).get("replicas")]
        surplus = len(idle) - deployment["spec"].get("revisionHistoryLimit", 10)
        for known in idle[: max(0, surplus)]:
            delete(self._api, REPLICASETS, namespace_of(known), name_of(known))

    def _write_status(self, key: Key, new_name: str | None) -> None:
        found = self._api.store.find(DEPLOYMENTS, *key)
        if found is None:
            return
        deployment = found.obj
        owned = self._owners.objects(uid_of(deployment), REPLICASETS)
        totals = {
            field: sum(status_of(known).get(field, 0) for known in owned)
            for field in ("replicas", "readyReplicas", "availableReplicas")
        }
        totals["updatedReplicas"] = sum(
            status_of(known).get("replicas", 0) for known in owned if name_of(known) == new_name
        )
        replicas = deployment["spec"]["replicas"]
        totals["unavailableReplicas"] = max(0, totals["replicas"] - totals["availableReplicas"])
        status = {
            "observedGeneration": deployment["metadata"]["generation"],
            **{field: count for field, count in totals.items() if count},
            "conditions": status_of(deployment).get("conditions") or [],
        }
        enough = totals["availableReplicas"] >= replicas - limits_of(deployment["spec"]).unavailable
        status = with_condition(status, self._condition("Available", enough, "MinimumReplicas"))
        done = totals["updatedReplicas"] == replicas == totals["replicas"] == totals["availableReplicas"]
        status = with_condition(status, self._progress(done))
        if _without_times(status) != _without_times(status_of(deployment)):
            self._api.update_status(DEPLOYMENTS, changed(deployment, status=status))

    def _condition(self, kind: str, holds: bool, reason: str) -> Json:
        stamp = timestamp(self._api.clock.now())
        return {
            "type": kind,
            "status": "True" if holds else "False",
            "lastUpdateTime": stamp,
            "lastTransitionTime": stamp,
            "reason": f"{reason}{'Available' if holds else 'Unavailable'}",
            "message": f"Deployment {'has' if holds else 'does not have'} minimum availability.",
        }

    def _progress(self, done: bool) -> Json:
        return {
            **self._condition("Progressing", True, ""),
            "reason": "NewReplicaSetAvailable" if done else "ReplicaSetUpdated",
            "message": "ReplicaSet has successfully progressed." if done else "ReplicaSet is progressing.",
        }


def _count(replica_set: Json) -> Count:
    status = status_of(replica_set)
    return Count(name_of(replica_set), replica_set["spec"]["replicas"], status.get("availableReplicas", 0))


def _revision(replica_set: Json) -> int:
    text = annotations_of(replica_set).get(REVISION, "0")
    return int(text) if text.isdigit() else 0


def _without_times(status: Json) -> Json:
    times = ("lastUpdateTime", "lastTransitionTime")
    conditions = [{key: known[key] for key in known if key not in times} for known in status.get("conditions") or ()]
    return {**status, "conditions": sorted(conditions, key=lambda known: str(known["type"]))}
