"""metrics.k8s.io on a real control plane: the lab's own server behind an APIService.

Only the API server may ask: the lab's server wants the aggregator's client certificate.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web

from loadtests.controlplane.api_service import ApiService, registered
from loadtests.controlplane.credentials import METRICS_HOST
from loadtests.controlplane.plane import ControlPlane
from loadtests.embedded.api_errors import ApiError
from loadtests.embedded.metrics_api import MetricsProvider
from loadtests.embedded.web.discovery import documents
from loadtests.embedded.web.requests import parse_target
from loadtests.embedded.web.responses import failure, json_answer
from loadtests.embedded.web.subresources import answer_metrics
from loadtests.workloads.api import LabApi
from reactor.errors import ClusterError

_GROUP, _VERSION = "metrics.k8s.io", "v1beta1"
_API = f"/apis/{_GROUP}/{_VERSION}"
_AVAILABLE_SECONDS = 30.0
_LAST_HANDSHAKE = 0.1
"""For a connection that was being made when the server stopped to listen."""


@asynccontextmanager
async def serve_metrics(plane: ControlPlane, provider: MetricsProvider) -> AsyncIterator[None]:
    """What the provider says, for everybody whom RBAC lets ask; registered within the block."""
    runner = web.AppRunner(_application(provider), access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    api = plane.client()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=_only_the_aggregator(plane))
    try:
        await site.start()
        async with registered(plane, api, ApiService(_GROUP, _VERSION, METRICS_HOST, runner.addresses[0][1])):
            await _until_available(api)
            yield
    finally:
        await api.close()
        await _stop(runner, site)


async def _stop(runner: web.AppRunner, site: web.TCPSite) -> None:
    """The aggregator keeps its connections for a minute and a half and never says goodbye: they are cut."""
    await site.stop()
    await asyncio.sleep(_LAST_HANDSHAKE)
    for connection in runner.server.connections if runner.server is not None else ():
        if connection.transport is not None:
            connection.transport.abort()
    await runner.cleanup()


def _application(provider: MetricsProvider) -> web.Application:
    app = web.Application()
    discovery = {path: document for path, document in documents().items() if path.startswith(f"/apis/{_GROUP}")}

    async def handle(request: web.Request) -> web.Response:
        if request.path in discovery:
            return json_answer(discovery[request.path])
        try:
            return answer_metrics(request, provider, parse_target(request.path))
        except ApiError as error:
            return failure(error)

    app.router.add_get(f"{_API}{{rest:.*}}", handle)
    return app


def _only_the_aggregator(plane: ControlPlane) -> ssl.SSLContext:
    given = plane.credentials
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=given.front_proxy_ca.certificate)
    context.load_cert_chain(given.metrics.certificate, given.metrics.key)
    context.verify_mode = ssl.CERT_REQUIRED
    return context


async def _until_available(api: LabApi) -> None:
    try:
        async with asyncio.timeout(_AVAILABLE_SECONDS):
            while not await _available(api):
                await asyncio.sleep(0.05)
    except TimeoutError as error:
        raise ClusterError(f"{_GROUP} was not served within {_AVAILABLE_SECONDS:g} s") from error


async def _available(api: LabApi) -> bool:
    try:
        await api.get(f"{_API}/nodes")
    except ClusterError:
        return False
    return True
