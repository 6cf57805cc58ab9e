"""Where requests go: the Ready pods of each app, followed through the API server as kube-proxy would."""

from __future__ import annotations

import ipaddress
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from loadtests.workloads.api import Changed, Json, Listed, has_condition
from reactor.errors import RematchError

_LOOPBACK = ipaddress.ip_network("127.0.0.0/8")


class ForeignAddressError(RematchError):
    """Load goes to this machine's loopback only."""


@dataclass(frozen=True, slots=True)
class Target:
    host: str
    port: int

    def __post_init__(self) -> None:
        if ipaddress.ip_address(self.host) not in _LOOPBACK:
            raise ForeignAddressError(f"refusing to send load to {self.host}: only to {_LOOPBACK}")


class Targets(Protocol):
    def pick(self, app: str) -> Target | None:
        """A Ready pod of the app, in turn; None when there is none."""
        ...


class Follower(Protocol):
    """`LabApi`, as far as targets need it."""

    async def follow(self, path: str, params: Mapping[str, str], see: Callable[[Listed | Changed], None]) -> None: ...


class FixedTargets:
    def __init__(self, targets: Mapping[str, Sequence[Target]]) -> None:
        self._targets = targets
        self._turn = 0

    def pick(self, app: str) -> Target | None:
        self._turn += 1
        found = self._targets.get(app, ())
        return found[self._turn % len(found)] if found else None


class WatchedTargets:
    """`run` follows the pods; `pick` answers from what it knows."""

    def __init__(self, api: Follower, namespace: str, label: str = "app") -> None:
        self._api = api
        self._path = f"/api/v1/namespaces/{namespace}/pods"
        self._label = label
        self._ready: dict[str, dict[str, Target]] = defaultdict(dict)
        self._turn = 0

    async def run(self) -> None:
        await self._api.follow(self._path, {"labelSelector": self._label}, self._heard)

    def pick(self, app: str) -> Target | None:
        found = self._ready.get(app)
        if not found:
            return None
        self._turn += 1
        return list(found.values())[self._turn % len(found)]

    def _heard(self, change: Listed | Changed) -> None:
        match change:
            case Listed(items):
                self._ready.clear()
                for item in items:
                    self._see(item)
            case Changed("DELETED", item):
                self._drop(item)
            case Changed(_, item):
                self._see(item)

    def _see(self, pod: Json) -> None:
        if not _takes_traffic(pod):
            self._drop(pod)
            return
        meta = pod["metadata"]
        self._ready[meta["labels"][self._label]][meta["uid"]] = Target(pod["status"]["podIP"], _port(pod))

    def _drop(self, pod: Json) -> None:
        meta = pod["metadata"]
        self._ready[meta["labels"][self._label]].pop(meta["uid"], None)


def _takes_traffic(pod: Json) -> bool:
    status = pod.get("status") or {}
    return has_condition(pod, "Ready") and bool(status.get("podIP")) and not pod["metadata"].get("deletionTimestamp")


def _port(pod: Json) -> int:
    ports = pod["spec"]["containers"][0].get("ports") or [{}]
    return int(ports[0].get("containerPort", 8080))
