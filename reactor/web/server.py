"""The web application: its routes and middleware, and the server that serves it for one controller."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from enum import StrEnum
from ipaddress import ip_address
from ssl import SSLContext

import structlog
from aiohttp import web
from aiohttp.typedefs import Middleware
from prometheus_client import CollectorRegistry

from reactor.app import LiveController
from reactor.clock import Clock
from reactor.cluster.access_review import AccessReview
from reactor.errors import InputError
from reactor.record.history_reader import HistoryReader
from reactor.web import middleware
from reactor.web.access import TokenAccess
from reactor.web.api import Api, Probes
from reactor.web.api_page import api_document_routes
from reactor.web.connections import PROBE_LIMITS, ConnectionLimits, Connections
from reactor.web.live import LiveView
from reactor.web.readers import HealthReader, Readers, StateReader
from reactor.web.static_files import StaticFiles, find_plotly
from reactor.web.stream import ChangeStream, Pace
from reactor.web.view import HealthSource, ViewSource

log = structlog.get_logger(__name__)

SHUTDOWN_SECONDS = 1.0
LINGERING_SECONDS = 2.0
"""For a body that no handler reads."""
BACKLOG = 32
"""asyncio tries to accept so many connections at once, and logs as many errors where there are no file handles left."""


class Auth(StrEnum):
    TOKEN = "token"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Exposure:
    """Who is served besides the processes of this machine. On loopback nothing has to be said."""

    auth: Auth | None = None
    """Default: none on loopback, else a bearer token of the cluster."""
    allowed_hosts: tuple[str, ...] = ()
    """Names under which the server is reached, beside those of loopback."""
    probe_host: str = "127.0.0.1"
    probe_port: int | None = None
    """Probes and metrics on a port of their own, without authentication; None: only with the dashboard."""

    def wants_token(self, host: str) -> bool:
        if self.auth is Auth.NONE and not is_loopback(host) and not self.allowed_hosts:
            raise InputError(
                "--auth none on an address that others reach needs --allowed-host: the name under which your proxy"
                " passes requests on"
            )
        return self.auth is Auth.TOKEN or (self.auth is None and not is_loopback(host))

    def names(self, host: str) -> frozenset[str] | None:
        """Those that are served; None for any. A page of another site cannot send a token, so any name will do."""
        if not is_loopback(host) and not self.allowed_hosts:
            return None
        return middleware.LOOPBACK_NAMES | {name.lower() for name in self.allowed_hosts}


@asynccontextmanager
async def serve(live: LiveController, host: str, port: int, exposure: Exposure | None = None) -> AsyncIterator[str]:
    """Serve the dashboard, the API and the probes of a controller, and yield the URL."""
    exposure = exposure or Exposure()
    view, controller = live_view(live), live.controller
    registry, clock = controller.instruments.registry, controller.clock
    access = TokenAccess(AccessReview(live.connection, live.namespace), clock)
    app = build_app(
        view,
        view,
        registry,
        clock,
        names=exposure.names(host),
        access=access if exposure.wants_token(host) else None,
    )
    async with AsyncExitStack() as stack:
        if exposure.probe_port is not None:
            probes = probe_app(view, registry)
            limits = PROBE_LIMITS
            await stack.enter_async_context(listening(probes, exposure.probe_host, exposure.probe_port, limits))
        url = await stack.enter_async_context(listening(app, host, port))
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
    names: frozenset[str] | None = middleware.LOOPBACK_NAMES,
    access: TokenAccess | None = None,
    pace: Pace | None = None,
) -> web.Application:
    """Only requests to one of `names` are answered; None: to any. With `access` only those of users it lets in."""
    checks: list[Middleware] = []
    if names is not None:
        checks.append(middleware.only_names(names))
    if access is not None:
        checks.append(access.only_users)
    app = web.Application(middlewares=[middleware.explain_errors, *checks, middleware.read_only])
    app.on_response_prepare.append(middleware.add_headers)

    stream = ChangeStream(source, clock, pace or Pace())
    app.on_shutdown.append(stream.close)

    app.add_routes(_pages())
    app.add_routes(Api(source, clock).routes())
    app.add_routes(api_document_routes())
    app.add_routes([web.get(middleware.STREAM_PATH, stream.handle)])
    app.add_routes(Probes(health, registry).routes())
    return app


def probe_app(health: HealthSource, registry: CollectorRegistry) -> web.Application:
    app = web.Application(middlewares=[middleware.explain_errors, middleware.read_only])
    app.on_response_prepare.append(middleware.add_headers)
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
async def listening(
    app: web.Application,
    host: str,
    port: int,
    limits: ConnectionLimits | None = None,
    tls: SSLContext | None = None,
) -> AsyncIterator[str]:
    """Serve inside of the context and yield the URL. Port 0 takes a free port; a taken port is an InputError."""
    limits = limits or ConnectionLimits()
    connections = Connections(limits)

    @web.middleware
    async def count_time(request: web.Request, handler: middleware.Handler) -> web.StreamResponse:
        connections.begin_request(request.transport, endless=request.path == middleware.STREAM_PATH)
        return await handler(request)

    app.middlewares.insert(0, count_time)
    runner = web.AppRunner(
        app,
        access_log=None,
        handler_cancellation=True,
        shutdown_timeout=SHUTDOWN_SECONDS,
        keepalive_timeout=limits.keep_alive,
        lingering_time=LINGERING_SECONDS,
    )
    await runner.setup()
    assert runner.server is not None
    try:
        loop, make = asyncio.get_running_loop(), connections.guarded(runner.server)
        try:
            server = await loop.create_server(make, host, port, backlog=BACKLOG, ssl=tls)
        except OSError as error:
            raise InputError(f"cannot listen on {host}:{port}: {error.strerror}; choose another port") from error
        try:
            bound = server.sockets[0].getsockname()[1]
            scheme = "http" if tls is None else "https"
            yield f"{scheme}://{f'[{host}]' if ':' in host else host}:{bound}"
        finally:
            server.close()
    finally:
        await runner.cleanup()
