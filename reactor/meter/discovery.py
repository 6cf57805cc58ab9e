"""Which pods are measured, and at which address of their nodes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import quote

import msgspec
from msgspec import Struct

from reactor.cluster.api import ApiRequest, Connection, checked, decoded
from reactor.cluster.objects import ObjectMeta

_DEADLINE = 10.0
ADDRESS_TYPES = ("ExternalIP", "InternalIP")
"""The first of these that a node has."""


class _Condition(Struct, frozen=True):
    type: str
    status: str


class _PodSpec(Struct, rename="camel", frozen=True):
    node_name: str = ""


class _PodStatus(Struct, frozen=True):
    conditions: tuple[_Condition, ...] = ()


class _PodMeta(Struct, rename="camel", frozen=True):
    name: str
    uid: str
    deletion_timestamp: str | None = None


class _Pod(Struct, frozen=True):
    metadata: _PodMeta
    spec: _PodSpec
    status: _PodStatus = _PodStatus()

    @property
    def answers(self) -> bool:
        ready = any(each.type == "Ready" and each.status == "True" for each in self.status.conditions)
        return ready and bool(self.spec.node_name) and self.metadata.deletion_timestamp is None


class _Pods(Struct, frozen=True):
    items: list[_Pod]


class _Address(Struct, frozen=True):
    type: str
    address: str


class _NodeStatus(Struct, frozen=True):
    addresses: tuple[_Address, ...] = ()


class _Node(Struct, frozen=True):
    metadata: ObjectMeta
    status: _NodeStatus = _NodeStatus()


_PODS = msgspec.json.Decoder(_Pods)
_NODE = msgspec.json.Decoder(_Node)


@dataclass(frozen=True, slots=True)
class MeasuredPod:
    name: str
    uid: str
    node: str


class Discovery:
    def __init__(self, connection: Connection, namespace: str, selectors: Iterable[str]) -> None:
        self._connection = connection
        self._namespace = namespace
        self._selectors = tuple(selectors)
        self._addresses: dict[str, str] = {}

    async def pods(self) -> list[MeasuredPod]:
        """The Ready pods of all selectors. Raises ClusterError."""
        found: dict[str, MeasuredPod] = {}
        for selector in self._selectors:
            path = f"/api/v1/namespaces/{self._namespace}/pods"
            body = await self._get(path, {"labelSelector": selector})
            for pod in decoded(_PODS, body, f"GET {path}").items:
                if pod.answers:
                    found[pod.metadata.uid] = MeasuredPod(pod.metadata.name, pod.metadata.uid, pod.spec.node_name)
        return list(found.values())

    async def address(self, node: str) -> str | None:
        """None when the node has none. An address that is known is not asked for again until `forget`."""
        if node not in self._addresses:
            path = f"/api/v1/nodes/{quote(node, safe='')}"
            status = decoded(_NODE, await self._get(path, {}), f"GET {path}").status
            by_type = {each.type: each.address for each in reversed(status.addresses)}
            address = next((by_type[kind] for kind in ADDRESS_TYPES if kind in by_type), None)
            if address is None:
                return None
            self._addresses[node] = address
        return self._addresses[node]

    def forget(self, node: str) -> None:
        """It did not answer: its address may have changed."""
        self._addresses.pop(node, None)

    async def _get(self, path: str, query: dict[str, str]) -> bytes:
        response = await self._connection.send(ApiRequest("GET", path, query, deadline=_DEADLINE))
        return checked(response, f"GET {path}")
