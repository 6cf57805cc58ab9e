"""metrics.k8s.io on a real control plane: the lab's own server behind an APIService.

The API server reaches it by a Service of type ExternalName: Endpoints refuse loopback addresses. Only the API server
may ask: the lab's server wants the aggregator's client certificate.
"""

from __future__ import annotations

import asyncio
import base64
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

from aiohttp import web

from loadtests.controlplane.credentials import METRICS_HOST
from loadtests.controlplane.plane import ControlPlane
from loadtests.embedded.api_errors import ApiError
from loadtests.embedded.metrics_api import MetricsProvider
from loadtests.embedded.web.discovery import documents
from loadtests.embedded.web.requests import parse_target
from loadtests.embedded.web.responses import failure, json_answer
from loadtests.embedded.web.subresources import answer_metrics
from loadtests.workloads.api import LabApi
from reactor.errors import ClusterError, Conflict

_SERVICE, _NAMESPACE = METRICS_HOST.split(".")[:2]
_GROUP, _VERSION = "metrics.k8s.io", "v1beta1"
_API = f"/apis/{_GROUP}/{_VERSION}"
_API_SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
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
        await _register(plane, api, runner.addresses[0][1])
        yield
    finally:
        with suppress(ClusterError):  # the API server may be gone by now
            await api.delete(f"{_API_SERVICES}/{_VERSION}.{_GROUP}", {})
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


async def _register(plane: ControlPlane, api: LabApi, port: int) -> None:
    external = {"type": "ExternalName", "externalName": "localhost"}
    namespace = f"/api/v1/namespaces/{_NAMESPACE}"
    await _create(api, "/api/v1/namespaces", {"metadata": {"name": _NAMESPACE}})
    await _create(api, f"{namespace}/services", {"metadata": {"name": _SERVICE}, "spec": external})
    await _create(api, _API_SERVICES, _api_service(plane, port))
    try:
        async with asyncio.timeout(_AVAILABLE_SECONDS):
            while not await _available(api):
                await asyncio.sleep(0.05)
    except TimeoutError as error:
        raise ClusterError(f"{_GROUP} was not served within {_AVAILABLE_SECONDS:g} s") from error


def _api_service(plane: ControlPlane, port: int) -> dict[str, Any]:
    bundle = base64.b64encode(plane.ca.read_bytes()).decode()
    return {
        "metadata": {"name": f"{_VERSION}.{_GROUP}"},
        "spec": {
            "group": _GROUP,
            "version": _VERSION,
            "groupPriorityMinimum": 100,
            "versionPriority": 100,
            "caBundle": bundle,
            "service": {"namespace": _NAMESPACE, "name": _SERVICE, "port": port},
        },
    }


async def _create(api: LabApi, path: str, body: dict[str, Any]) -> None:
    try:
        await api.create(path, body)
    except Conflict:
        return


async def _available(api: LabApi) -> bool:
    try:
        await api.get(f"{_API}/nodes")
    except ClusterError:
        return False
    return True
