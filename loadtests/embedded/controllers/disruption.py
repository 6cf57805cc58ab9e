"""PodDisruptionBudgets: which pods each protects, and how many of them may be evicted now."""

from __future__ import annotations

import math
from collections import defaultdict

from loadtests.embedded.controllers.shared import WorkQueue
from loadtests.embedded.object_api import ObjectApi
from loadtests.embedded.objects import (
    changed,
    controller_of,
    is_deleting,
    is_ready,
    labels_of,
    name_of,
    namespace_of,
    seconds,
    spec_of,
    status_of,
    timestamp,
    with_condition,
)
from loadtests.embedded.resources import PODDISRUPTIONBUDGETS, PODS, Json, of_kind
from loadtests.embedded.selectors import LabelTest, selector_of
from loadtests.embedded.store import Change, ChangeType, Key, ObjectStore, Stored


class ProtectionIndex:
    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self._tests: dict[Key, LabelTest] = {}
        self._pods: dict[Key, set[Key]] = defaultdict(set)
        self._budgets: dict[Key, set[Key]] = defaultdict(set)

    def pods_of(self, budget: Key) -> list[Key]:
        return sorted(self._pods.get(budget, ()))

    def budgets_of(self, pod: Key) -> set[Key]:
        return self._budgets.get(pod, set())

    def notice(self, change: Change) -> set[Key]:
        """Takes the change in, and says which budgets have to be looked at again."""
        if change.resource is PODDISRUPTIONBUDGETS:
            self._notice_budget(change)
            return {change.new.key}
        before = set(self.budgets_of(change.new.key))
        if change.type is ChangeType.DELETED:
            self._link(change.new.key, set())
        elif change.old is None or labels_of(change.old.obj) != labels_of(change.new.obj):
            labels, namespace = labels_of(change.new.obj), change.new.key[0]
            tests = ((key, test) for key, test in self._tests.items() if key[0] == namespace)
            self._link(change.new.key, {key for key, test in tests if test(labels)})
        return before | self.budgets_of(change.new.key)

    def _notice_budget(self, change: Change) -> None:
        budget = change.new.key
        if change.type is ChangeType.MODIFIED and _selector(change.old) == _selector(change.new):
            return
        self._tests.pop(budget, None)
        for pod in self._pods.pop(budget, ()):
            self._budgets[pod].discard(budget)
        if change.type is not ChangeType.DELETED:
            test = self._tests[budget] = selector_of(_selector(change.new))
            for stored in self._store.all(PODS, budget[0]):
                if test(labels_of(stored.obj)):
                    self._pods[budget].add(stored.key)
                    self._budgets[stored.key].add(budget)

    def _link(self, pod: Key, budgets: set[Key]) -> None:
        for gone in self._budgets.pop(pod, set()) - budgets:
            self._pods[gone].discard(pod)
        for budget in budgets:
            self._pods[budget].add(pod)
        if budgets:
            self._budgets[pod] = budgets


def _selector(budget: Stored | None) -> Json | None:
    return None if budget is None else budget.obj["spec"].get("selector")


_FORGET_DISRUPTED = 120.0
"""An eviction that was granted but never happened is forgotten after this many seconds."""


class DisruptionController:
    def __init__(self, api: ObjectApi) -> None:
        self._api = api
        self._protection = ProtectionIndex(api.store)
        self.queue: WorkQueue[Key] = WorkQueue(self.reconcile)
        api.store.observe(self._notice)

    def _notice(self, change: Change) -> None:
        if change.resource in (PODDISRUPTIONBUDGETS, PODS):
            for key in self._protection.notice(change):
                self.queue.add(key)
        elif "scale" in change.resource.subresources and _scale_changed(change):
            for budget in self._api.store.all(PODDISRUPTIONBUDGETS, change.new.key[0]):
                self.queue.add(budget.key)

    def reconcile(self, key: Key) -> None:
        found = self._api.store.find(PODDISRUPTIONBUDGETS, *key)
        if found is None or is_deleting(found.obj):
            return
        budget = found.obj
        pods = [self._api.get(PODS, *pod) for pod in self._protection.pods_of(key)]
        disrupted = self._still_disrupted(budget, pods)
        expected, desired = self._wanted(budget["spec"], pods)
        healthy = sum(1 for pod in pods if is_ready(pod) and not is_deleting(pod) and name_of(pod) not in disrupted)
        allowed = max(0, healthy - desired) if expected > 0 else 0
        counts = {
            "disruptionsAllowed": allowed,
            "currentHealthy": healthy,
            "desiredHealthy": desired,
            "expectedPods": expected,
        }
        self._write(budget, counts, disrupted)

    def _write(self, budget: Json, counts: dict[str, int], disrupted: dict[str, str]) -> None:
        generation = budget["metadata"]["generation"]
        allowed = counts["disruptionsAllowed"] > 0
        condition = {
            "type": "DisruptionAllowed",
            "status": "True" if allowed else "False",
            "observedGeneration": generation,
            "lastTransitionTime": timestamp(self._api.clock.now()),
            "reason": "SufficientPods" if allowed else "InsufficientPods",
            "message": "",
        }
        base = {"observedGeneration": generation, **counts, "conditions": status_of(budget).get("conditions") or []}
        status = with_condition({**base, "disruptedPods": disrupted} if disrupted else base, condition)
        if status != status_of(budget):
            self._api.update_status(PODDISRUPTIONBUDGETS, changed(budget, status=status))

    def _still_disrupted(self, budget: Json, pods: list[Json]) -> dict[str, str]:
        """Evictions that were granted and are not seen yet."""
        now, standing = self._api.clock.now(), {name_of(pod) for pod in pods if not is_deleting(pod)}
        kept = {
            name: stamp
            for name, stamp in (status_of(budget).get("disruptedPods") or {}).items()
            if name in standing and seconds(stamp) + _FORGET_DISRUPTED > now
        }
        if kept:
            soonest = min(seconds(stamp) for stamp in kept.values()) + _FORGET_DISRUPTED - now
            self.queue.add_after((namespace_of(budget), name_of(budget)), max(soonest, 0.0) + 0.01)
        return kept

    def _wanted(self, spec: Json, pods: list[Json]) -> tuple[int, int]:
        """(expected, desired healthy): of the pods there are, or of the scale of their controllers."""
        minimum, maximum = spec.get("minAvailable"), spec.get("maxUnavailable")
        if maximum is not None:
            expected = self._expected_scale(pods)
            return expected, max(0, expected - _share(maximum, expected))
        if isinstance(minimum, str):
            expected = self._expected_scale(pods)
            return expected, _share(minimum, expected)
        return (0, 0) if minimum is None else (len(pods), minimum)

    def _expected_scale(self, pods: list[Json]) -> int:
        scales: dict[str, int] = {}
        for pod in pods:
            owner = self._top_owner(pod)
            if owner is not None:
                scales[owner["metadata"]["uid"]] = int(spec_of(owner).get("replicas", 0))
        return sum(scales.values())

    def _top_owner(self, obj: Json) -> Json | None:
        reference = controller_of(obj)
        if reference is None:
            return None
        resource = of_kind(reference["apiVersion"], reference["kind"])
        found = self._api.store.find(resource, namespace_of(obj), reference["name"]) if resource else None
        if found is None or found.obj["metadata"]["uid"] != reference["uid"]:
            return None
        return self._top_owner(found.obj) or found.obj


def _scale_changed(change: Change) -> bool:
    return change.old is None or spec_of(change.old.obj).get("replicas") != spec_of(change.new.obj).get("replicas")


def _share(value: int | str, total: int) -> int:
    """A number of pods, or a percentage of them, rounded up."""
    if isinstance(value, int):
        return value
    return math.ceil(int(value.removesuffix("%")) * total / 100)
