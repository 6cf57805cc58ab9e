"""The web application: its routes and middleware, and the server that serves it for one controller."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from ipaddress import ip_address

import structlog
from aiohttp import web
from prometheus_client import CollectorRegistry

from reactor.app import LiveController
from reactor.clock import Clock
from reactor.errors import InputError
from reactor.record.history_reader import HistoryReader
from reactor.web import middleware
from reactor.web.api import Api, Probes
from reactor.web.api_page import api_document_routes
from reactor.web.live import LiveView
from reactor.web.readers import HealthReader, Readers, StateReader
from reactor.web.static_files import StaticFiles, find_plotly
from reactor.web.stream import ChangeStream, Pace
from reactor.web.view import HealthSource, ViewSource

log = structlog.get_logger(__name__)

SHUTDOWN_SECONDS = 1.0


@asynccontextmanager
async def serve(live: LiveController, host: str, port: int) -> AsyncIterator[str]:
    """Serve the dashboard, the API and the probes of a controller, and yield the URL."""
    view, controller = live_view(live), live.controller
    app = build_app(view, view, controller.instruments.registry, controller.clock, loopback=is_loopback(host))
    async with listening(app, host, port) as url:
        sampling = asyncio.create_task(view.keep_sampling())
        sampling.add_done_callback(_report_failure)
        try:
            yield url
        finally:
            sampling.cancel()
            await asyncio.gather(sampling, return_exceptions=True)


def _report_failure(sampling: asyncio.Task[None]) -> None:
    """The controller goes on without charts."""
    if not sampling.cancelled():
        log.error("the charts get no more samples", exc_info=sampling.exception())


def live_view(live: LiveController) -> LiveView:
    controller = live.controller
    readers = Readers(StateReader(controller), live.settings, HistoryReader(controller.store), HealthReader(live))
    view = LiveView(readers, controller.clock, live.connection.server.partition("://")[2])
    controller.recorder.listen(view.cycle_recorded)
    return view


def build_app(
    source: ViewSource,
    health: HealthSource,
    registry: CollectorRegistry,
    clock: Clock,
    *,
    loopback: bool = True,
    pace: Pace | None = None,
) -> web.Application:
    """With `loopback` the server is bound to a loopback address. Then only loopback names are served."""
    names = [middleware.only_loopback_names] if loopback else []
    app = web.Application(middlewares=[middleware.explain_errors, *names, middleware.read_only])
    app.on_response_prepare.append(middleware.add_headers)

    stream = ChangeStream(source, clock, pace or Pace())
    app.on_shutdown.append(stream.close)

    app.add_routes(_pages())
    app.add_routes(Api(source, clock).routes())
    app.add_routes(api_document_routes())
    app.add_routes([web.get(middleware.STREAM_PATH, stream.handle)])
    app.add_routes(Probes(health, registry).routes())
    return app


def _pages() -> list[web.RouteDef]:
    plotly = find_plotly()
    files = StaticFiles(plotly.tag if plotly else "")

    async def overview(_request: web.Request) -> web.Response:
        return files.page("./")

    async def pod(_request: web.Request) -> web.Response:
        return files.page("../../")

    script = [web.get("/static/plotly.min.js", plotly.handle)] if plotly else []
    return [
        web.get("/", overview),
        web.get("/pods/{namespace}/{name}", pod),
        *script,
        web.get("/static/{name}", files.handle),
    ]


def is_loopback(host: str) -> bool:
    """Whether a server bound to `host` is reached from this machine alone."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


@asynccontextmanager
async def listening(app: web.Application, host: str, port: int) -> AsyncIterator[str]:
    """Serve inside of the context and yield the URL. Port 0 takes a free port; a taken port is an InputError."""
    runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=SHUTDOWN_SECONDS)
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, host, port).start()
        except OSError as error:
            raise InputError(f"cannot listen on {host}:{port}: {error.strerror}; choose another --port") from error
        bound = runner.addresses[0][1]
        yield f"http://{f'[{host}]' if ':' in host else host}:{bound}"
    finally:
        await runner.cleanup()
