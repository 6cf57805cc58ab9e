"""Which budget protects which pods, kept up to date by watching the store: a change of status alone costs nothing."""

from __future__ import annotations

from collections import defaultdict

from loadtests.embedded.objects import labels_of
from loadtests.embedded.resources import PODDISRUPTIONBUDGETS, PODS, Json
from loadtests.embedded.selectors import Test, selector_of
from loadtests.embedded.store import Change, ChangeType, Key, ObjectStore, Stored


class ProtectionIndex:
    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self._tests: dict[Key, Test] = {}
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
