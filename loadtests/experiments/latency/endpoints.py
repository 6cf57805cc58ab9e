"""The endpoints of a namespace's Services, followed as kube-proxy does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from loadtests.workloads.api import Changed, LabApi, Listed

Json = dict[str, Any]
_SERVICE = "kubernetes.io/service-name"


@dataclass(frozen=True, slots=True)
class Endpoint:
    node: str
    host: str
    port: int


class ServiceEndpoints:
    def __init__(self, api: LabApi, namespace: str) -> None:
        self._api = api
        self._path = f"/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices"
        self._slices: dict[str, Json] = {}

    async def run(self) -> None:
        await self._api.follow(self._path, {}, self._heard)

    def ready(self, service: str) -> list[Endpoint]:
        return self._endpoints(service, "ready")

    def on_node(self, service: str, node: str) -> Sequence[Endpoint]:
        """Of externalTrafficPolicy Local: the ready ones, else those that end and still serve."""
        ready = [each for each in self.ready(service) if each.node == node]
        return ready or [each for each in self._endpoints(service, "serving") if each.node == node]

    def _endpoints(self, service: str, condition: str) -> list[Endpoint]:
        return [
            Endpoint(each.get("nodeName", ""), each["addresses"][0], slice_["ports"][0]["port"])
            for _, slice_ in sorted(self._slices.items())
            if slice_["metadata"]["labels"].get(_SERVICE) == service and slice_.get("ports")
            for each in slice_.get("endpoints") or ()
            if each.get("conditions", {}).get(condition)
        ]

    def _heard(self, change: Listed | Changed) -> None:
        match change:
            case Listed(items):
                self._slices = {item["metadata"]["name"]: item for item in items}
            case Changed("DELETED", item):
                self._slices.pop(item["metadata"]["name"], None)
            case Changed(_, item):
                self._slices[item["metadata"]["name"]] = item
