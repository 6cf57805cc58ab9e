"""The objects, one global version that only grows, and a bounded history of changes per kind.

A past state is not kept: it is rebuilt by undoing the changes since. So a page token, an exact list and a watch all
expire in the same way, when the history no longer reaches back that far.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Callable
from enum import StrEnum
from typing import Any, NamedTuple

import msgspec

from loadtests.embedded.api_errors import already_exists, expired, not_found
from loadtests.embedded.resources import STORED, Json, Resource

Key = tuple[str, str]
"""(namespace, name); the namespace of a cluster-wide object is empty."""

_encode = msgspec.json.Encoder().encode


class Stored:
    """One version of one object, with its JSON made once and shared by everyone who sends it."""

    __slots__ = ("_raw", "key", "obj", "version")

    def __init__(self, key: Key, obj: Json, version: int) -> None:
        self.key = key
        self.obj = obj
        self.version = version
        self._raw: bytes | None = None

    @property
    def raw(self) -> bytes:
        if self._raw is None:
            self._raw = _encode(self.obj)
        return self._raw


class ChangeType(StrEnum):
    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"


class Change(NamedTuple):
    """`new` of a deletion is the last state under the version of the deletion, as watchers see it."""

    resource: Resource
    type: ChangeType
    new: Stored
    old: Stored | None

    @property
    def version(self) -> int:
        return self.new.version


class ChangeLog:
    """The latest changes of one kind, and a way to wait for the next."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._changes: list[Change] = []
        self._next: asyncio.Future[None] | None = None
        self.forgotten = 0
        """The version of the newest change that is no longer here."""

    def append(self, change: Change) -> None:
        self._changes.append(change)
        if len(self._changes) >= 2 * self._limit:
            self.forget(len(self._changes) - self._limit)
        if self._next is not None and not self._next.done():
            self._next.set_result(None)

    def forget(self, count: int) -> None:
        if count:
            self.forgotten = self._changes[count - 1].version
            del self._changes[:count]

    def forget_all(self, version: int) -> None:
        self._changes.clear()
        self.forgotten = version

    def since(self, version: int) -> list[Change]:
        if version < self.forgotten:
            raise expired(f"too old resource version: {version} ({self.forgotten})")
        return self._changes[bisect_right(self._changes, version, key=lambda change: change.version) :]

    def next_change(self) -> asyncio.Future[None]:
        """Done when something is appended after this call; shared by all who wait, so never cancel it."""
        if self._next is None or self._next.done():
            self._next = asyncio.get_running_loop().create_future()
        return self._next


class ObjectStore:
    def __init__(self, history: int = 5_000) -> None:
        self.version = 1
        self._items: dict[Resource, dict[Key, Stored]] = {resource: {} for resource in STORED}
        self._logs = {resource: ChangeLog(history) for resource in STORED}
        self._observers: list[Callable[[Change], None]] = []
        self._sorted: dict[Resource, tuple[int, list[Stored]]] = {}

    def observe(self, callback: Callable[[Change], None]) -> None:
        """Calls back on every change, at once: note a key and return, do not write from inside."""
        self._observers.append(callback)

    def log(self, resource: Resource) -> ChangeLog:
        return self._logs[resource]

    def find(self, resource: Resource, namespace: str, name: str) -> Stored | None:
        return self._items[resource].get((namespace, name))

    def get(self, resource: Resource, namespace: str, name: str) -> Stored:
        stored = self.find(resource, namespace, name)
        if stored is None:
            raise not_found(resource, name)
        return stored

    def all(self, resource: Resource, namespace: str = "") -> list[Stored]:
        """Every object of a kind, in no promised order; of one namespace when given."""
        items = self._items[resource].values()
        return [stored for stored in items if stored.key[0] == namespace] if namespace else list(items)

    def snapshot(self, resource: Resource, version: int | None = None) -> list[Stored]:
        """The kind as it was at a version (now, when None), ordered by namespace and name. Raises 410 when too old."""
        cached = self._sorted.get(resource)
        if cached is not None and version is not None and cached[0] == version >= self._logs[resource].forgotten:
            return cached[1]
        items = dict(self._items[resource])
        if version is not None:
            for change in reversed(self._logs[resource].since(version)):
                if change.old is None:
                    del items[change.new.key]
                else:
                    items[change.old.key] = change.old
        ordered = [items[key] for key in sorted(items)]
        self._sorted[resource] = (self.version if version is None else version, ordered)
        return ordered

    def create(self, resource: Resource, obj: Json) -> Stored:
        key = _key(obj)
        if key in self._items[resource]:
            raise already_exists(resource, key[1])
        stored = self._commit(resource, key, obj)
        self._items[resource][key] = stored
        self._publish(Change(resource, ChangeType.ADDED, stored, None))
        return stored

    def replace(self, resource: Resource, obj: Json) -> Stored:
        key = _key(obj)
        old = self.get(resource, *key)
        stored = self._commit(resource, key, obj)
        self._items[resource][key] = stored
        self._publish(Change(resource, ChangeType.MODIFIED, stored, old))
        return stored

    def remove(self, resource: Resource, namespace: str, name: str) -> Stored:
        old = self.get(resource, namespace, name)
        stored = self._commit(resource, old.key, old.obj)
        del self._items[resource][old.key]
        self._publish(Change(resource, ChangeType.DELETED, stored, old))
        return stored

    def compact(self) -> None:
        """Forgets all history: a request for an earlier version gets 410."""
        for log in self._logs.values():
            log.forget_all(self.version)
        self._sorted.clear()

    def _commit(self, resource: Resource, key: Key, obj: Json) -> Stored:
        self.version += 1
        metadata = {**obj["metadata"], "resourceVersion": str(self.version)}
        # apiVersion and kind come first, so that a list can cut them off the shared bytes: its items have neither.
        body: dict[str, Any] = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata}
        body.update((field, value) for field, value in obj.items() if field not in body)
        return Stored(key, body, self.version)

    def _publish(self, change: Change) -> None:
        self._logs[change.resource].append(change)
        for observer in self._observers:
            observer(change)


def _key(obj: Json) -> Key:
    return obj["metadata"].get("namespace", ""), obj["metadata"]["name"]
