"""The web application: routes and what guards them. server.py serves it."""

from __future__ import annotations

from aiohttp import web
from prometheus_client import CollectorRegistry

from reactor.clock import Clock
from reactor.web import guard
from reactor.web.api import Api
from reactor.web.assets import Assets
from reactor.web.plotly import find_plotly
from reactor.web.probes import Probes
from reactor.web.stream import ChangeStream, Pace
from reactor.web.view import HealthSource, ViewSource


def build_app(
    source: ViewSource,
    health: HealthSource,
    registry: CollectorRegistry,
    clock: Clock,
    *,
    loopback: bool = True,
    pace: Pace | None = None,
) -> web.Application:
    """`loopback` says that the server is bound to a loopback address: then only loopback names are answered."""
    names = [guard.only_loopback_names] if loopback else []
    app = web.Application(middlewares=[guard.explain_errors, *names, guard.only_reading])
    app.on_response_prepare.append(guard.add_headers)

    stream = ChangeStream(source, clock, pace or Pace())
    app.on_shutdown.append(stream.close)

    app.add_routes(_pages())
    app.add_routes(Api(source, clock).routes())
    app.add_routes([web.get(guard.STREAM_PATH, stream.handle)])
    app.add_routes(Probes(health, registry).routes())
    return app


def _pages() -> list[web.RouteDef]:
    plotly = find_plotly()
    assets = Assets(plotly.tag if plotly else "")

    async def overview(_request: web.Request) -> web.Response:
        return assets.shell("./")

    async def pod(_request: web.Request) -> web.Response:
        return assets.shell("../../")

    script = [web.get("/static/plotly.min.js", plotly.handle)] if plotly else []
    return [
        web.get("/", overview),
        web.get("/pods/{namespace}/{name}", pod),
        *script,
        web.get("/static/{name}", assets.handle),
    ]
