"""What the controllers share: a work queue of keys, and the index from owners to their dependents."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable
from typing import Generic, TypeVar

from loadtests.embedded.api_errors import ApiError
from loadtests.embedded.resources import Json, Resource
from loadtests.embedded.store import Change, ChangeType, Key, ObjectStore, Stored

K = TypeVar("K", bound=Hashable)

_BATCH = 50
_RETRY = 0.05


Dependent = tuple[Resource, Key]
_NOBODY = ""


class WorkQueue(Generic[K]):
    def __init__(self, reconcile: Callable[[K], None]) -> None:
        self._reconcile = reconcile
        self._keys: dict[K, None] = {}
        self._wake = asyncio.Event()
        self._timers: dict[K, asyncio.TimerHandle] = {}

    def add(self, key: K) -> None:
        self._keys[key] = None
        self._wake.set()

    def add_after(self, key: K, seconds: float) -> None:
        """Looks at the key again by then at the latest; of several waits the shortest counts."""
        loop = asyncio.get_running_loop()
        known = self._timers.get(key)
        if known is not None:
            if known.when() <= loop.time() + seconds:
                return
            known.cancel()
        self._timers[key] = loop.call_later(seconds, self._due, key)

    def _due(self, key: K) -> None:
        del self._timers[key]
        self.add(key)

    async def run(self) -> None:
        try:
            while True:
                await self._wake.wait()
                self._wake.clear()
                while self._keys:
                    self._work(_BATCH)
                    await asyncio.sleep(0)
        finally:
            for timer in self._timers.values():
                timer.cancel()

    def _work(self, limit: int) -> None:
        for _ in range(min(limit, len(self._keys))):
            key = next(iter(self._keys))
            del self._keys[key]
            try:
                self._reconcile(key)
            except ApiError:
                self.add_after(key, _RETRY)  # a write lost a race, or a name clashed: look again


class OwnerIndex:
    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self._dependents: dict[str, dict[Resource, dict[Key, None]]] = defaultdict(dict)
        """By kind, because most objects of a large cluster have no owner, and every reconcile asks for such pods."""
        store.observe(self._notice)

    def unowned(self, resource: Resource) -> list[Json]:
        return self.objects(_NOBODY, resource)

    def dependents(self, uid: str) -> list[Dependent]:
        return [(kind, key) for kind, keys in self._dependents.get(uid, {}).items() for key in keys]

    def objects(self, uid: str, resource: Resource) -> list[Json]:
        """The dependents of one kind."""
        found = (self._store.find(resource, *key) for key in self._dependents.get(uid, {}).get(resource, ()))
        return [stored.obj for stored in found if stored is not None]

    def _notice(self, change: Change) -> None:
        before = set(_owners(change.old))
        after = set() if change.type is ChangeType.DELETED else set(_owners(change.new))
        for uid in before - after:
            self._remove(uid, change.resource, change.new.key)
        for uid in after - before:
            self._dependents[uid].setdefault(change.resource, {})[change.new.key] = None

    def _remove(self, uid: str, resource: Resource, key: Key) -> None:
        kinds = self._dependents[uid]
        kinds.get(resource, {}).pop(key, None)
        if not kinds.get(resource):
            kinds.pop(resource, None)
        if not kinds:
            del self._dependents[uid]


def _owners(stored: Stored | None) -> Iterable[str]:
    if stored is None:
        return ()
    return [reference["uid"] for reference in stored.obj["metadata"].get("ownerReferences") or ()] or [_NOBODY]
