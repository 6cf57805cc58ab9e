"""Service -> one EndpointSlice with the pods that its selector selects and that have an address."""

from __future__ import annotations

from loadtests.embedded.controllers.shared import WorkQueue
from loadtests.embedded.object_api import ObjectApi
from loadtests.embedded.objects import (
    changed,
    is_deleting,
    is_finished,
    is_ready,
    labels_of,
    name_of,
    namespace_of,
    owner_reference,
    spec_of,
    status_of,
    uid_of,
)
from loadtests.embedded.resources import ENDPOINTSLICES, PODS, SERVICES, Json
from loadtests.embedded.store import Change, ChangeType, Key

SERVICE_LABEL = "kubernetes.io/service-name"


class EndpointSliceController:
    def __init__(self, api: ObjectApi) -> None:
        self._api = api
        self.queue: WorkQueue[Key] = WorkQueue(self.reconcile)
        api.store.observe(self._notice)

    def _notice(self, change: Change) -> None:
        if change.resource is SERVICES and change.type is not ChangeType.DELETED:
            self.queue.add(change.new.key)
        elif change.resource is PODS:
            for service in self._api.store.all(SERVICES, change.new.key[0]):
                pods = (stored.obj for stored in (change.old, change.new) if stored is not None)
                if any(_selects(service.obj, pod) for pod in pods):
                    self.queue.add(service.key)

    def reconcile(self, key: Key) -> None:
        found = self._api.store.find(SERVICES, *key)
        if found is None or is_deleting(found.obj) or not spec_of(found.obj).get("selector"):
            return
        service = found.obj
        pods = [stored.obj for stored in self._api.store.all(PODS, key[0]) if _selects(service, stored.obj)]
        endpoints = [_endpoint(pod) for pod in pods if status_of(pod).get("podIP") and not is_finished(pod)]
        known = self._api.store.find(ENDPOINTSLICES, *key)
        if known is None:
            self._api.create(ENDPOINTSLICES, _slice(service, endpoints))
        elif (known.obj.get("endpoints") or []) != endpoints:
            self._api.update(ENDPOINTSLICES, changed(known.obj, endpoints=endpoints))


def _selects(service: Json, pod: Json) -> bool:
    selector = spec_of(service).get("selector") or {}
    return bool(selector) and selector.items() <= labels_of(pod).items()


def _endpoint(pod: Json) -> Json:
    serving = is_ready(pod)
    return {
        "addresses": [status_of(pod)["podIP"]],
        "conditions": {
            "ready": serving and not is_deleting(pod),
            "serving": serving,
            "terminating": is_deleting(pod),
        },
        "nodeName": pod["spec"].get("nodeName", ""),
        "targetRef": {"kind": "Pod", "namespace": namespace_of(pod), "name": name_of(pod), "uid": uid_of(pod)},
    }


def _slice(service: Json, endpoints: list[Json]) -> Json:
    metadata = {
        "name": name_of(service),
        "namespace": namespace_of(service),
        "labels": {SERVICE_LABEL: name_of(service)},
        "ownerReferences": [owner_reference(SERVICES.api_version, SERVICES.kind, service)],
    }
    return {"metadata": metadata, "addressType": "IPv4", "endpoints": endpoints}
