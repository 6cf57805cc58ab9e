"""The routes for programs: the JSON API, version 1, and health, readiness and Prometheus metrics."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from aiohttp import web
from prometheus_client import CollectorRegistry, generate_latest

from reactor.clock import Clock
from reactor.web.middleware import error_response, json_response, text_response
from reactor.web.query import (
    DecisionsQuery,
    FindQuery,
    NoQuery,
    OverviewQuery,
    PodsQuery,
    TopQuery,
    UsageQuery,
    read_query,
)
from reactor.web.view import Decisions, Health, HealthSource, ViewSource

T = TypeVar("T")

PAUSE_FACTOR = 4.0
"""After c seconds of computing pause for 4c: one view takes at most a fifth of a core, however many viewers it has."""
LONGEST_PAUSE = 30.0
MOST_AT_ONCE = 2
"""Requests that compute in threads at once. More would not be faster, because threads of Python take turns, but they
would take the turns of the event loop and the threads of the planner: anyone who reaches the port may send requests."""
METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Api:
    def __init__(self, source: ViewSource, clock: Clock) -> None:
        self._source = source
        self._cluster = RateLimited(source.cluster, self._version, clock)
        self._series = RateLimited(source.series, self._version, clock)
        self._computing = asyncio.Semaphore(MOST_AT_ONCE)
        self._reading = asyncio.Semaphore(MOST_AT_ONCE)

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/api/v1/overview", self.overview),
            web.get("/api/v1/series", self.series),
            web.get("/api/v1/calibration", self.calibration),
            web.get("/api/v1/decisions", self.decisions),
            web.get("/api/v1/pods", self.pods),
            web.get("/api/v1/pods/{namespace}/{name}", self.pod),
            web.get("/api/v1/top", self.top),
            web.get("/api/v1/find", self.find),
            web.get("/api/v1/usage", self.usage),
        ]

    async def overview(self, request: web.Request) -> web.Response:
        query = read_query(OverviewQuery, request.query)
        cluster = await self._cluster.get()
        async with self._computing:
            return json_response(await asyncio.to_thread(cluster.overview, query))

    async def pods(self, request: web.Request) -> web.Response:
        query = read_query(PodsQuery, request.query)
        cluster = await self._cluster.get()
        async with self._computing:
            return json_response(await asyncio.to_thread(cluster.pods, query))

    async def top(self, request: web.Request) -> web.Response:
        query = read_query(TopQuery, request.query)
        cluster = await self._cluster.get()
        async with self._computing:
            return json_response(await asyncio.to_thread(cluster.top, query))

    async def series(self, request: web.Request) -> web.Response:
        read_query(NoQuery, request.query)
        return json_response(await self._series.get())

    async def calibration(self, request: web.Request) -> web.Response:
        read_query(NoQuery, request.query)
        return json_response(await self._source.calibration())

    async def decisions(self, request: web.Request) -> web.Response:
        query = read_query(DecisionsQuery, request.query)
        async with self._reading:
            entries = await self._source.decisions(query.limit, query.before, query.waits == "true")
        return json_response(Decisions(entries))

    async def pod(self, request: web.Request) -> web.Response:
        read_query(NoQuery, request.query)
        namespace, name = request.match_info["namespace"], request.match_info["name"]
        async with self._computing:
            view = await self._source.pod(namespace, name)
        if view is None:
            return error_response(request, 404, f"there is no pod {namespace}/{name}"[:400])
        return json_response(view)

    async def find(self, request: web.Request) -> web.Response:
        query = read_query(FindQuery, request.query)
        async with self._computing:
            return json_response(await self._source.find_pods(query))

    async def usage(self, request: web.Request) -> web.Response:
        query = read_query(UsageQuery, request.query)
        async with self._reading:
            found = await self._source.usage(query)
        if found is None:
            return error_response(request, 404, f"no usage of {query.name} is recorded"[:400])
        return json_response(found)

    async def _version(self) -> int:
        return await self._source.wait_for_change(-1)


class RateLimited(Generic[T]):
    """A costly view that many viewers share. It is computed again only when the version has changed.

    Never returns a value that was computed before the last change: a page that fetches after a change sees the change.
    """

    def __init__(
        self, compute: Callable[[], Awaitable[T]], version: Callable[[], Awaitable[int]], clock: Clock
    ) -> None:
        self._compute = compute
        self._version = version
        self._clock = clock
        self._computed_version = -1
        self._lock = asyncio.Lock()
        self._begun = float("-inf")
        self._paused_until = float("-inf")
        self._value: T | None = None

    async def get(self) -> T:
        called = self._clock.monotonic()
        async with self._lock:
            if self._value is not None and (self._begun > called or await self._version() == self._computed_version):
                return self._value
            pause = self._paused_until - self._clock.monotonic()
            if pause > 0:
                await self._clock.sleep(pause)
            begun, version = self._clock.monotonic(), await self._version()
            value = await self._compute()
            ended = self._clock.monotonic()
            self._value, self._begun, self._computed_version = value, begun, version
            self._paused_until = ended + min(PAUSE_FACTOR * (ended - begun), LONGEST_PAUSE)
            return value


class Probes:
    def __init__(self, health: HealthSource, registry: CollectorRegistry) -> None:
        self._health = health
        self._registry = registry

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/healthz", self.live),
            web.get("/readyz", self.ready),
            web.get("/metrics", self.metrics),
        ]

    async def live(self, _request: web.Request) -> web.Response:
        return _health_response(self._health.live())

    async def ready(self, _request: web.Request) -> web.Response:
        return _health_response(self._health.ready())

    async def metrics(self, _request: web.Request) -> web.Response:
        headers = {"Content-Type": METRICS_TYPE, "Cache-Control": "no-store"}
        response = web.Response(body=generate_latest(self._registry), headers=headers)
        response.enable_compression()
        return response


def _health_response(health: Health) -> web.Response:
    if health.ok:
        return text_response("ok\n")
    reasons = health.reasons or ("no reason given",)
    return text_response("".join(f"not ok: {reason}\n" for reason in reasons), status=503)
