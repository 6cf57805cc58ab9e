"""Writes the controllers' Events; a repeated Event raises the count of the first."""

from __future__ import annotations

from loadtests.embedded.object_api import ObjectApi
from loadtests.embedded.objects import micro_timestamp, name_of, namespace_of, timestamp, uid_of
from loadtests.embedded.resources import EVENTS, Json

_REMEMBERED = 4096


class EventRecorder:
    def __init__(self, api: ObjectApi, component: str) -> None:
        self._api = api
        self._component = component
        self._names: dict[tuple[str, str, str, str], str] = {}

    def record(self, about: Json, reason: str, message: str, kind: str = "Normal") -> None:
        key = (uid_of(about), kind, reason, message)
        namespace = namespace_of(about) or "default"
        known = self._names.get(key)
        before = self._api.store.find(EVENTS, namespace, known) if known else None
        stamp = timestamp(self._api.clock.now())
        if before is not None:
            self._api.update(EVENTS, {**before.obj, "count": before.obj["count"] + 1, "lastTimestamp": stamp})
            return
        event = {
            "metadata": {"name": self._name(about), "namespace": namespace},
            "involvedObject": _reference(about),
            "reason": reason,
            "message": message,
            "type": kind,
            "count": 1,
            "firstTimestamp": stamp,
            "lastTimestamp": stamp,
            "source": {"component": self._component},
            "reportingComponent": self._component,
        }
        if len(self._names) >= _REMEMBERED:
            self._names.clear()
        self._names[key] = name_of(self._api.create(EVENTS, event))

    def record_once(self, about: Json, reason: str, message: str, action: str) -> None:
        """The newer form, as kube-scheduler writes it: an eventTime and no count."""
        namespace = namespace_of(about) or "default"
        event = {
            "metadata": {"name": self._name(about), "namespace": namespace},
            "involvedObject": _reference(about),
            "reason": reason,
            "message": message,
            "type": "Normal",
            "action": action,
            "eventTime": micro_timestamp(self._api.clock.now()),
            "reportingComponent": self._component,
            "reportingInstance": f"{self._component}-embedded",
        }
        self._api.create(EVENTS, event)

    def _name(self, about: Json) -> str:
        return f"{name_of(about)}.{self._api.rng.getrandbits(64):016x}"


def _reference(about: Json) -> Json:
    metadata = about["metadata"]
    fields = ("namespace", "name", "uid", "resourceVersion")
    known = {field: metadata[field] for field in fields if field in metadata}
    return {"kind": about["kind"], "apiVersion": about["apiVersion"], **known}
