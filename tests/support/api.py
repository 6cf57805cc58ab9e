"""The embedded API server without HTTP: for tests on a virtual clock."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import msgspec

from loadtests.embedded import ClusterOptions, EmbeddedCluster, deletion
from loadtests.embedded.api_errors import ApiError
from loadtests.embedded.patching import apply_patch
from loadtests.embedded.web.requests import parse_target
from reactor.clock import Clock
from reactor.cluster.api import ApiRequest, ApiResponse, Query
from reactor.errors import Unreachable


class InProcessApi:
    """Implements `api.Connection`. `cut` makes it unreachable; `refuse` answers 403 to what it says."""

    def __init__(self, clock: Clock) -> None:
        self.cluster = EmbeddedCluster(ClusterOptions(controllers=False), clock=clock)
        self.cut = False
        self.refuse: Callable[[ApiRequest], bool] = lambda _request: False
        self.writes: list[ApiRequest] = []

    def another(self) -> InProcessApi:
        """Another way to the same cluster, which can be cut alone."""
        other = InProcessApi(self.cluster.api.clock)
        other.cluster = self.cluster
        return other

    async def send(self, request: ApiRequest) -> ApiResponse:
        if self.cut:
            raise Unreachable(f"{request.method} {request.path}: cut")
        if self.refuse(request):
            return ApiResponse(403, msgspec.json.encode({"message": "forbidden", "code": 403}))
        if request.method != "GET":
            self.writes.append(request)
        try:
            return ApiResponse(200, msgspec.json.encode(self._answer(request)))
        except ApiError as error:
            return ApiResponse(error.code, msgspec.json.encode(error.as_status()))

    def stream(self, path: str, query: Query, idle_timeout: float) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        raise NotImplementedError

    async def close(self) -> None:
        pass

    def _answer(self, request: ApiRequest) -> Any:
        api, target = self.cluster.api, parse_target(request.path)
        resource, namespace, name = target.resource, target.namespace, target.name
        if request.method == "GET" and not name:
            items = [stored.obj for stored in api.store.all(resource, namespace)]
            return {"metadata": {"resourceVersion": str(api.store.version)}, "items": items}
        if request.method == "GET":
            return api.get(resource, namespace, name)
        body = dict(request.body or {})
        if request.method == "POST":
            return api.create(resource, body, namespace=namespace)
        if request.method == "DELETE":
            return deletion.delete(api, resource, namespace, name, deletion.parse_options(body)).obj
        patched = apply_patch(request.content_type, api.get(resource, namespace, name), body)
        return (api.update_status if target.subresource else api.update)(resource, patched)
