"""When the Services had no ready endpoint: a request that is refused then was not refused by a pod."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from loadtests.workloads.api import Changed, LabApi, Listed
from reactor.clock import Clock

_SERVICE = "kubernetes.io/service-name"
PROXY_SECONDS = 2.0
"""kube-proxy may learn so much later that there is an endpoint again."""


class EmptyServices:
    """`run` follows the EndpointSlices of a namespace."""

    def __init__(self, api: LabApi, namespace: str, clock: Clock) -> None:
        self._api, self._clock = api, clock
        self._path = f"/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices"
        self._ready: dict[str, dict[str, int]] = defaultdict(dict)
        self._since: dict[str, float] = {}
        self._spans: dict[str, list[tuple[float, float]]] = defaultdict(list)

    async def run(self) -> None:
        await self._api.follow(self._path, {}, self._heard)

    def was_empty(self, service: str, at: float) -> bool:
        spans = self._spans[service]
        if service in self._since:
            spans = [*spans, (self._since[service], self._clock.now())]
        return any(begin <= at <= end + PROXY_SECONDS for begin, end in spans)

    def _heard(self, change: Listed | Changed) -> None:
        match change:
            case Listed(items):
                self._ready.clear()
                for item in items:
                    self._see(item, gone=False)
            case Changed(kind, item):
                self._see(item, gone=kind == "DELETED")

    def _see(self, item: dict[str, Any], *, gone: bool) -> None:
        service = item["metadata"]["labels"].get(_SERVICE, "")
        endpoints = [] if gone else item.get("endpoints") or []
        ready = sum(each.get("conditions", {}).get("ready") is not False for each in endpoints)
        self._ready[service][item["metadata"]["name"]] = ready
        empty = not sum(self._ready[service].values())
        if empty:
            self._since.setdefault(service, self._clock.now())
        elif service in self._since:
            self._spans[service].append((self._since.pop(service), self._clock.now()))
