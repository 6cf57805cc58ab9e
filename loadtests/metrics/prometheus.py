"""The lab's Prometheus: the real HTTP API with the few queries that the lab needs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Protocol

from aiohttp import web

from loadtests.metrics.selector import QueryError, parse_selector
from loadtests.metrics.series import VectorSample
from reactor.clock import Clock

Json = dict[str, Any]


class Series(Protocol):
    def named(self, name: str) -> Iterator[VectorSample]:
        """None for a name that there is not."""
        ...


class LabPrometheus:
    def __init__(self, series: Series, clock: Clock) -> None:
        self._series = series
        self._clock = clock
        self._runner: web.AppRunner | None = None
        self.url = ""

    async def start(self, host: str = "127.0.0.1", port: int = 0) -> None:
        app = web.Application()
        app.router.add_get("/api/v1/query", self._query)
        app.router.add_post("/api/v1/query", self._query)
        app.router.add_get("/-/ready", _ready)
        app.router.add_route("*", "/{path:.*}", _unknown)
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        site = web.TCPSite(self._runner, host, port)
        await site.start()
        self.url = f"http://{host}:{self._runner.addresses[0][1]}"

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def _query(self, request: web.Request) -> web.Response:
        form = await request.post() if request.method == "POST" else {}
        query = form.get("query", request.query.get("query", ""))
        try:
            return web.json_response(self._answer(str(query)))
        except QueryError as error:
            return _bad(str(error))

    def _answer(self, query: str) -> Json:
        selector = parse_selector(query)
        now = round(self._clock.now(), 3)
        result: list[Json] = [
            {"metric": {"__name__": selector.name, **series.labels}, "value": [now, _text(series.value)]}
            for series in self._series.named(selector.name)
            if selector.matches(series.labels)
        ]
        return {"status": "success", "data": {"resultType": "vector", "result": result}}


def _text(value: float) -> str:
    """Numbers as Prometheus prints them."""
    if math.isfinite(value):
        return str(int(value)) if value == int(value) else repr(value)
    return "NaN" if math.isnan(value) else ("+Inf" if value > 0 else "-Inf")


def _bad(message: str, status: int = 400) -> web.Response:
    return web.json_response({"status": "error", "errorType": "bad_data", "error": message}, status=status)


async def _ready(_request: web.Request) -> web.Response:
    return web.Response(text="The lab's Prometheus is ready.\n")


async def _unknown(request: web.Request) -> web.Response:
    return _bad(f"{request.path} is not served by the lab's Prometheus; it answers /api/v1/query", status=404)
