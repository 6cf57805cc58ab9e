"""One route for everything: the path says the kind, the method says the verb."""

from __future__ import annotations

import asyncio
import hmac
from dataclasses import dataclass

from aiohttp import web

from loadtests.embedded.api_errors import ApiError, method_not_allowed, unauthorized
from loadtests.embedded.metrics_api import MetricsProvider
from loadtests.embedded.object_api import ObjectApi
from loadtests.embedded.resources import NODE_METRICS, POD_METRICS
from loadtests.embedded.web import reading, subresources, writing
from loadtests.embedded.web.discovery import HEALTH_PATHS, documents
from loadtests.embedded.web.requests import LIMIT, RequestTarget, parse_target
from loadtests.embedded.web.responses import failure, json_answer
from loadtests.embedded.web.subresources import REVIEW_PATH, answer_metrics, answer_review
from loadtests.embedded.web.watching import answer_watch

_PUBLIC = (*HEALTH_PATHS, "/version")


@dataclass(frozen=True, slots=True)
class ApiApp:
    api: ObjectApi
    metrics: MetricsProvider
    token: str
    closing: asyncio.Future[None]
    """Done when the server stops: open watches end then."""

    def build(self) -> web.Application:
        app = web.Application(client_max_size=LIMIT)
        discovery = {path: json_answer(document).body for path, document in documents().items()}

        async def handle(request: web.Request) -> web.StreamResponse:
            try:
                self._authorize(request)
                document = discovery.get(request.path.rstrip("/"))
                if document is not None and request.method == "GET":
                    return web.Response(body=document, content_type="application/json")
                return await self._answer(request)
            except ApiError as error:
                return failure(error)

        app.router.add_route("*", "/{path:.*}", handle)
        return app

    def _authorize(self, request: web.Request) -> None:
        if not self.token or request.path in _PUBLIC:
            return
        given = request.headers.get("Authorization", "").removeprefix("Bearer ")
        if not hmac.compare_digest(given.encode(), self.token.encode()):
            raise unauthorized()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        path = request.path
        if path in HEALTH_PATHS or path.startswith(tuple(f"{known}/" for known in HEALTH_PATHS)):
            return web.Response(text="ok")
        if path == REVIEW_PATH and request.method == "POST":
            return await answer_review(request)
        target = parse_target(path)
        if target.resource in (NODE_METRICS, POD_METRICS):
            if request.method != "GET":
                raise method_not_allowed()
            return answer_metrics(request, self.metrics, target)
        if target.subresource:
            return await self._subresource(request, target)
        return await self._object(request, target) if target.name else await self._collection(request, target)

    async def _collection(self, request: web.Request, target: RequestTarget) -> web.StreamResponse:
        if request.method == "GET":
            if request.query.get("watch", "") in ("1", "true"):
                return await self._watch(request, target)
            return reading.answer_list(request, self.api.store, target, self.api.clock.now())
        if request.method == "POST" and (target.namespace or not target.resource.namespaced):
            return await writing.answer_create(request, self.api, target)
        if request.method == "DELETE" and "deletecollection" in target.resource.verbs:
            return await writing.answer_delete_collection(request, self.api, target)
        raise method_not_allowed()

    async def _object(self, request: web.Request, target: RequestTarget) -> web.StreamResponse:
        if request.method == "GET":
            if request.query.get("watch", "") in ("1", "true"):
                return await self._watch(request, target)
            return reading.answer_get(request, self.api.store, target, self.api.clock.now())
        handlers = {
            "PUT": writing.answer_update,
            "PATCH": writing.answer_patch,
            "DELETE": writing.answer_delete,
        }
        handler = handlers.get(request.method)
        if handler is None:
            raise method_not_allowed()
        return await handler(request, self.api, target)

    async def _watch(self, request: web.Request, target: RequestTarget) -> web.StreamResponse:
        return await answer_watch(request, self.api.store, target, self.api.clock, self.closing)

    async def _subresource(self, request: web.Request, target: RequestTarget) -> web.StreamResponse:
        method = request.method
        if target.subresource == "scale":
            return await subresources.answer_scale(request, self.api, target)
        if target.subresource == "status" and method in ("GET", "PUT", "PATCH"):
            return await self._object(request, target)
        if target.subresource == "binding" and method == "POST":
            return await subresources.answer_binding(request, self.api, target)
        if target.subresource == "eviction" and method == "POST":
            return await subresources.answer_eviction(request, self.api, target)
        raise method_not_allowed()
