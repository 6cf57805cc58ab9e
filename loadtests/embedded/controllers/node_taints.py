"""Taints of cordoned and not-ready nodes."""

from __future__ import annotations

from loadtests.embedded.controllers.shared import WorkQueue
from loadtests.embedded.object_api import ObjectApi
from loadtests.embedded.objects import changed, condition_of, spec_of
from loadtests.embedded.resources import NODES, Json
from loadtests.embedded.store import Change

_UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
_NOT_READY = "node.kubernetes.io/not-ready"


class NodeTaintController:
    """NoSchedule only: nothing is evicted here because a node is not ready, the lab's nodes come back."""

    def __init__(self, api: ObjectApi) -> None:
        self._api = api
        self.queue: WorkQueue[str] = WorkQueue(self.reconcile)
        api.store.observe(self._notice)

    def _notice(self, change: Change) -> None:
        if change.resource is NODES:
            self.queue.add(change.new.key[1])

    def reconcile(self, name: str) -> None:
        found = self._api.store.find(NODES, "", name)
        if found is None:
            return
        spec = spec_of(found.obj)
        taints: list[Json] = list(spec.get("taints") or ())
        for key, holds in _wanted(found.obj).items():
            present = any(taint["key"] == key and taint["effect"] == "NoSchedule" for taint in taints)
            if holds and not present:
                taints.append({"key": key, "effect": "NoSchedule"})
            elif present and not holds:
                taints = [taint for taint in taints if (taint["key"], taint["effect"]) != (key, "NoSchedule")]
        if taints != list(spec.get("taints") or ()):
            self._api.update(NODES, changed(found.obj, spec={**spec, "taints": taints}))


def _wanted(node: Json) -> dict[str, bool]:
    ready = condition_of(node, "Ready")
    return {
        _UNSCHEDULABLE: bool(spec_of(node).get("unschedulable")),
        _NOT_READY: ready is not None and ready.get("status") != "True",
    }
