"""Single reads of the doctor, typed and bounded in time, and what every check starts from."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import msgspec

from reactor.clock import Clock
from reactor.cluster.api import ApiRequest, Connection, Query, checked, decoded
from reactor.cluster.reads import ClusterReader
from reactor.cluster.rights import INSTALL
from reactor.cluster.view import ClusterView
from reactor.errors import NotFound
from reactor.settings.model import Settings
from reactor.state.steering import SteeringStatus

T = TypeVar("T")

DEADLINE = 10.0
_AT_ONCE = 16
_CHART = "deploy/chart"


class ApiServer:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._slots = asyncio.Semaphore(_AT_ONCE)

    async def get(self, path: str, answer: type[T], query: Query | None = None) -> T:
        """Raises a ClusterError."""
        return await self._ask(ApiRequest("GET", path, query, deadline=DEADLINE), answer)

    async def find(self, path: str, answer: type[T]) -> T | None:
        """None where there is no such object or API."""
        try:
            return await self.get(path, answer)
        except NotFound:
            return None

    async def raw(self, path: str) -> bytes:
        return await self._send(ApiRequest("GET", path, deadline=DEADLINE))

    async def review(self, path: str, spec: Mapping[str, object], answer: type[T]) -> T:
        """Create one of the objects that are only questions, such as a SubjectAccessReview."""
        return await self._ask(ApiRequest("POST", path, body={"spec": spec}, deadline=DEADLINE), answer)

    async def _ask(self, request: ApiRequest, answer: type[T]) -> T:
        body = await self._send(request)
        return decoded(msgspec.json.Decoder(answer), body, f"{request.method} {request.path}")

    async def _send(self, request: ApiRequest) -> bytes:
        async with self._slots:
            return checked(await self._connection.send(request), f"{request.method} {request.path}")


@dataclass(frozen=True, slots=True)
class Installation:
    """How Rematch was installed, for the commands that mend it."""

    namespace: str
    release: str = ""
    """Of Helm; empty when it was not installed by Helm, or not at all."""
    found: bool = False

    def mend(self, *values: str) -> str:
        """The command that brings everything the chart has, with these values."""
        sets = "".join(f" --set {value}" for value in values)
        if self.release:
            return f"helm upgrade {self.release} {_CHART} -n {self.namespace} --reset-then-reuse-values{sets}"
        if self.found and not values:
            return INSTALL
        image = "" if self.found else " --set image.repository=REGISTRY/rematch"
        return f"helm upgrade --install rematch {_CHART} -n {self.namespace} --create-namespace{image}{sets}"


@dataclass(frozen=True, slots=True)
class Examined:
    api: ApiServer
    reader: ClusterReader
    clock: Clock
    installation: Installation
    settings: Settings
    """Those of the ConfigMap, or the defaults where it has none that are valid."""
    view: ClusterView
    steering: SteeringStatus

    @property
    def namespace(self) -> str:
        return self.installation.namespace


def listed(names: Sequence[str], most: int = 5) -> str:
    rest = len(names) - most
    return ", ".join(names[:most]) + (f" and {rest} more" if rest > 0 else "")
