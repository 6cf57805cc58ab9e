"""external.metrics.k8s.io for HorizontalPodAutoscalers: current and predicted load of workloads, as in /metrics.

The API server passes requests on after it has checked the user's rights. So only its own client certificate is let in.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import structlog
from aiohttp import web
from prometheus_client.registry import Collector
from prometheus_client.samples import Sample

from matching.selectors import matches
from reactor.clock import Clock, rfc3339
from reactor.cluster.aggregation import FrontProxy, ServiceName, front_proxy, owner_of_group
from reactor.cluster.api import Connection
from reactor.errors import ClusterError, InputError
from reactor.settings.selector import parse_selector
from reactor.web.connections import ConnectionLimits
from reactor.web.server import listening

log = structlog.get_logger(__name__)

GROUP = "external.metrics.k8s.io"
VERSION = "v1beta1"
SERVICE = "rematch"
_PREFIXES = ("rematch_current_", "rematch_predicted_")
_API = f"/apis/{GROUP}/{VERSION}"
LIMITS = ConnectionLimits()


@dataclass(frozen=True, slots=True)
class ExternalMetricsOptions:
    port: int
    certificate: Path
    key: Path
    host: str = "0.0.0.0"


@asynccontextmanager
async def serve_external_metrics(
    options: ExternalMetricsOptions, metrics: Collector, connection: Connection, namespace: str, clock: Clock
) -> AsyncIterator[str]:
    """`namespace`: of our Service. Refuses where another one serves the group: a cluster has one server for it."""
    try:
        await refuse_other_owner(connection, namespace)
        proxy = await front_proxy(connection)
    except ClusterError as error:
        raise InputError(f"{GROUP} cannot be served: {error}; see docs/autoscaling.md") from error
    if proxy is None:
        raise InputError(f"{GROUP} cannot be served: this cluster has no aggregation layer")
    app = application(metrics, clock, frozenset(proxy.names))
    context = tls_context(options, proxy)
    async with listening(app, options.host, options.port, LIMITS, tls=context) as url:
        log.info("serving external metrics", url=url)
        yield url


async def refuse_other_owner(connection: Connection, namespace: str) -> None:
    owner = await owner_of_group(connection, f"{VERSION}.{GROUP}")
    if owner is not None and owner != ServiceName(namespace, SERVICE):
        by = f"{owner.namespace}/{owner.name}" if owner.name else "the API server itself"
        raise InputError(
            f"{GROUP} is served by {by} already, and a cluster has one server for it: start without"
            " --external-metrics-port and let that one read rematch_predicted_* from Prometheus (docs/autoscaling.md)"
        )


def tls_context(options: ExternalMetricsOptions, proxy: FrontProxy) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cadata=proxy.authority)
        context.load_cert_chain(options.certificate, options.key)
    except (OSError, ssl.SSLError) as error:
        raise InputError(f"{options.certificate}, {options.key}: no certificate with its key: {error}") from error
    context.verify_mode = ssl.CERT_REQUIRED
    return context


def application(metrics: Collector, clock: Clock, names: frozenset[str]) -> web.Application:
    """`names`: common names of the client certificate that are let in; any if there are none."""

    @web.middleware
    async def only_the_api_server(request: web.Request, handler: Any) -> web.StreamResponse:
        certificate = request.get_extra_info("peercert") or {}
        common = {value for part in certificate.get("subject", ()) for key, value in part if key == "commonName"}
        if names and not common & names:
            return _status(403, "Forbidden", f"the client certificate is of {', '.join(sorted(common)) or 'nobody'}")
        response: web.StreamResponse = await handler(request)
        return response

    async def resources(_request: web.Request) -> web.Response:
        listed = [
            {"name": name, "singularName": "", "namespaced": True, "kind": "ExternalMetricValueList", "verbs": ["get"]}
            for name in sorted({family.name for family in metrics.collect() if family.name.startswith(_PREFIXES)})
        ]
        document = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": f"{GROUP}/{VERSION}"}
        return web.json_response({**document, "resources": listed})

    async def values(request: web.Request) -> web.Response:
        namespace, name = request.match_info["namespace"], request.match_info["metric"]
        try:
            wanted = parse_selector(request.query.get("labelSelector", ""))
        except ValueError as error:
            return _status(400, "BadRequest", f"labelSelector: {error}")
        families = [family for family in metrics.collect() if family.name == name and name.startswith(_PREFIXES)]
        if not families:
            return _status(404, "NotFound", f"no metric {name!r}; GET {_API} lists them")
        samples = [sample for sample in families[0].samples if sample.labels["namespace"] == namespace]
        found = [sample for sample in samples if matches(wanted, sample.labels)]
        return web.json_response(_values(found, clock.now()))

    app = web.Application(middlewares=[only_the_api_server])
    app.router.add_get(_API, resources)
    app.router.add_get(f"{_API}/namespaces/{{namespace}}/{{metric}}", values)
    return app


def _values(samples: Iterable[Sample], now: float) -> dict[str, Any]:
    items = [
        {
            "metricName": sample.name,
            "metricLabels": dict(sample.labels),
            "timestamp": rfc3339(now),
            "value": f"{round(sample.value * 1000)}m",
        }
        for sample in samples
    ]
    return {"kind": "ExternalMetricValueList", "apiVersion": f"{GROUP}/{VERSION}", "metadata": {}, "items": items}


def _status(code: int, reason: str, message: str) -> web.Response:
    document = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "metadata": {}}
    return web.json_response({**document, "message": message, "reason": reason, "code": code}, status=code)
