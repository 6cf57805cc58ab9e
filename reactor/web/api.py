"""The JSON API, version 1: reads the view and bounds what is sent."""

from __future__ import annotations

from aiohttp import web

from reactor.clock import Clock
from reactor.web.answers import error_answer, json_answer
from reactor.web.bounds import Wanted, counted, cut, cut_series
from reactor.web.paced import Paced
from reactor.web.parameters import Parameters
from reactor.web.view import Overview, Series, ViewSource

MOST_NODES = 5000
MOST_CHIPS = 1000
MOST_EXPANDED = 20
MOST_DECISIONS = 200


class Api:
    def __init__(self, source: ViewSource, clock: Clock) -> None:
        self._source = source
        self._overview = Paced(self._count, clock)
        self._series = Paced(self._draw, clock)

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/api/v1/overview", self.overview),
            web.get("/api/v1/series", self.series),
            web.get("/api/v1/decisions", self.decisions),
            web.get("/api/v1/pods/{namespace}/{name}", self.pod),
        ]

    async def overview(self, request: web.Request) -> web.Response:
        query = Parameters(request.query, ("nodes", "chips", "match", "expand"), repeatable=("expand",))
        wanted = Wanted(
            nodes=query.whole("nodes", Wanted().nodes, 1, MOST_NODES),
            chips=query.whole("chips", Wanted().chips, 1, MOST_CHIPS),
            match=query.text("match"),
            expand=query.texts("expand", MOST_EXPANDED),
        )
        return json_answer(cut(await self._overview.get(), wanted))

    async def series(self, request: web.Request) -> web.Response:
        Parameters(request.query, ())
        return json_answer(await self._series.get())

    async def decisions(self, request: web.Request) -> web.Response:
        query = Parameters(request.query, ("limit", "before", "waits"))
        limit = query.whole("limit", 50, 1, MOST_DECISIONS)
        before = query.optional_whole("before")
        waits = query.flag("waits", default=True)
        return json_answer({"decisions": await self._source.decisions(limit, before, waits)})

    async def pod(self, request: web.Request) -> web.Response:
        Parameters(request.query, ())
        namespace, name = request.match_info["namespace"], request.match_info["name"]
        view = await self._source.pod(namespace, name)
        if view is None:
            return error_answer(request, 404, f"there is no pod {namespace}/{name}"[:400])
        return json_answer(view)

    async def _count(self) -> Overview:
        return counted(await self._source.overview())

    async def _draw(self) -> Series:
        return cut_series(await self._source.series())
