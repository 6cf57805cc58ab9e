"""A connection that loses requests or answers, as a test orders it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from enum import Enum, auto
from pathlib import Path

from loadtests.embedded import EmbeddedCluster
from reactor.cluster.api import ApiRequest, ApiResponse, Connection, Query
from reactor.cluster.connection import open_connection
from reactor.errors import Unreachable


class Loss(Enum):
    REQUEST = auto()
    """It never reaches the server."""
    ANSWER = auto()
    """It is carried out, and nobody hears of it."""


class LossyConnection:
    """`losses` strike the next writes, one each; None lets one pass. `cut` loses every request."""

    def __init__(self, inner: Connection) -> None:
        self._inner = inner
        self.losses: list[Loss | None] = []
        self.cut = False
        self.sent: list[ApiRequest] = []

    async def send(self, request: ApiRequest) -> ApiResponse:
        if self.cut:
            raise Unreachable(f"{request.method} {request.path}: cut")
        writes = request.method != "GET"
        loss = self.losses.pop(0) if writes and self.losses else None
        if loss is Loss.REQUEST:
            raise Unreachable(f"{request.method} {request.path}: the request was lost")
        self.sent.append(request)
        response = await self._inner.send(request)
        if loss is Loss.ANSWER:
            raise Unreachable(f"{request.method} {request.path}: the answer was lost")
        return response

    def stream(self, path: str, query: Query, idle_timeout: float) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        return self._inner.stream(path, query, idle_timeout)

    async def close(self) -> None:
        await self._inner.close()

    @property
    def writes(self) -> list[ApiRequest]:
        return [request for request in self.sent if request.method != "GET"]


@asynccontextmanager
async def lossy_connection(cluster: EmbeddedCluster, folder: Path) -> AsyncIterator[LossyConnection]:
    connection = LossyConnection(await open_connection(str(cluster.kubeconfig(folder / "kubeconfig"))))
    try:
        yield connection
    finally:
        await connection.close()
