"""A connection that sends no write while this process may not write."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import replace

from reactor.cluster.api import ApiRequest, ApiResponse, Connection, Query
from reactor.errors import NotLeader

_READS = frozenset({"GET", "HEAD"})
_SHORTEST = 0.1


class FencedConnection:
    """Implements `api.Connection`. `seconds_left` says for how long this request may be under way, 0 for not at all.

    Asked right before sending, and the request's deadline ends with that time. Kubernetes itself cannot refuse the
    write of a past leader, so each write has a precondition as well.
    """

    def __init__(self, inner: Connection, seconds_left: Callable[[ApiRequest], float]) -> None:
        self._inner = inner
        self._seconds_left = seconds_left

    async def send(self, request: ApiRequest) -> ApiResponse:
        if request.method in _READS or _is_event(request):
            return await self._inner.send(request)
        left = self._seconds_left(request)
        if left < _SHORTEST:
            raise NotLeader(f"{request.method} {request.path}: not sent, this process does not hold the Lease")
        return await self._inner.send(replace(request, deadline=min(request.deadline, left)))

    def stream(self, path: str, query: Query, idle_timeout: float) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        return self._inner.stream(path, query, idle_timeout)

    async def close(self) -> None:
        await self._inner.close()


def _is_event(request: ApiRequest) -> bool:
    """Late Events do no harm: `/api/v1/namespaces/NAMESPACE/events[/NAME]`."""
    parts = request.path.split("/")
    return parts[1:4] == ["api", "v1", "namespaces"] and len(parts) > 5 and parts[5] == "events"


def is_binding(request: ApiRequest) -> bool:
    """Bindings have a UID precondition, and a pod that is bound already refuses a second one."""
    return request.method == "POST" and request.path.endswith("/binding")
