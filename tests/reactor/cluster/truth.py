"""What a well-behaved API server holds: pods, their versions, and the history that watches are served from."""

from __future__ import annotations

import asyncio
import copy
from dataclasses import dataclass, field
from typing import Any

import msgspec


def pod_json(name: str, **changes: Any) -> dict[str, Any]:
    """A small valid pod; `spec`, `status` and `metadata` are merged over it."""
    pod: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": f"uid-{name}",
            "resourceVersion": "1",
            "creationTimestamp": "2026-11-16T00:49:38Z",
        },
        "spec": {"containers": [{"name": "app", "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}}}]},
        "status": {"phase": "Running"},
    }
    for section, values in changes.items():
        pod[section] = {**pod[section], **values}
    return pod


@dataclass
class Truth:
    objects: dict[str, dict[str, Any]] = field(default_factory=dict)
    version: int = 1
    compacted: int = 0
    """Watches from an older version than this get 410."""
    history: list[tuple[int, str, dict[str, Any]]] = field(default_factory=list)
    moved: asyncio.Event = field(default_factory=asyncio.Event)

    def put(self, name: str, **changes: Any) -> None:
        kind = "MODIFIED" if name in self.objects else "ADDED"
        self._note(kind, pod_json(name, **changes))

    def delete(self, name: str) -> None:
        if name in self.objects:
            self._note("DELETED", copy.deepcopy(self.objects[name]))

    def compact(self) -> None:
        self.compacted = self.version

    def bookmark(self) -> None:
        """A version that is spent on something our watchers do not see."""
        self.version += 1
        self.history.append(
            (self.version, "BOOKMARK", {"kind": "Pod", "metadata": {"resourceVersion": str(self.version)}})
        )
        self.wake()

    def _note(self, kind: str, pod: dict[str, Any]) -> None:
        self.version += 1
        pod["metadata"]["resourceVersion"] = str(self.version)
        name = pod["metadata"]["name"]
        if kind == "DELETED":
            del self.objects[name]
        else:
            self.objects[name] = pod
        self.history.append((self.version, kind, pod))
        self.wake()

    def wake(self) -> None:
        self.moved.set()
        self.moved = asyncio.Event()

    def versions(self) -> dict[str, str]:
        """UID to version: what a mirror must hold in the end."""
        return {pod["metadata"]["uid"]: pod["metadata"]["resourceVersion"] for pod in self.objects.values()}

    def page(self, start: int, limit: int) -> bytes:
        names = sorted(self.objects)
        chosen = names[start : start + limit]
        meta: dict[str, Any] = {"resourceVersion": str(self.version)}
        if start + limit < len(names):
            meta["continue"] = str(start + limit)
        items = [self.objects[name] for name in chosen]
        return msgspec.json.encode({"kind": "PodList", "metadata": meta, "items": items})

    def lines_after(self, version: int) -> list[tuple[int, bytes]]:
        return [
            (number, msgspec.json.encode({"type": kind, "object": pod}))
            for number, kind, pod in self.history
            if number > version
        ]


def status_json(code: int, message: str, **details: Any) -> bytes:
    return msgspec.json.encode(
        {"kind": "Status", "status": "Failure", "code": code, "message": message, "details": details}
    )
