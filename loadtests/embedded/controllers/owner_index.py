"""Who depends on whom, by owner UID, kept up to date by watching the store."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from loadtests.embedded.resources import Json, Resource
from loadtests.embedded.store import Change, ChangeType, Key, ObjectStore, Stored

Dependent = tuple[Resource, Key]
_NOBODY = ""


class OwnerIndex:
    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self._dependents: dict[str, dict[Dependent, None]] = defaultdict(dict)
        store.observe(self._notice)

    def unowned(self, resource: Resource) -> list[Json]:
        return self.objects(_NOBODY, resource)

    def dependents(self, uid: str) -> list[Dependent]:
        return list(self._dependents.get(uid, ()))

    def objects(self, uid: str, resource: Resource) -> list[Json]:
        """The dependents of one kind."""
        found = (self._store.find(kind, *key) for kind, key in self.dependents(uid) if kind is resource)
        return [stored.obj for stored in found if stored is not None]

    def _notice(self, change: Change) -> None:
        dependent = (change.resource, change.new.key)
        before = set(_owners(change.old))
        after = set() if change.type is ChangeType.DELETED else set(_owners(change.new))
        for uid in before - after:
            self._dependents[uid].pop(dependent, None)
            if not self._dependents[uid]:
                del self._dependents[uid]
        for uid in after - before:
            self._dependents[uid][dependent] = None


def _owners(stored: Stored | None) -> Iterable[str]:
    if stored is None:
        return ()
    return [reference["uid"] for reference in stored.obj["metadata"].get("ownerReferences") or ()] or [_NOBODY]
