"""What machines ask: health, readiness and Prometheus metrics."""

from __future__ import annotations

from aiohttp import web
from prometheus_client import CollectorRegistry, generate_latest

from reactor.web.answers import text_answer
from reactor.web.view import Health, HealthSource

METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"


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
        return _told(self._health.live())

    async def ready(self, _request: web.Request) -> web.Response:
        return _told(self._health.ready())

    async def metrics(self, _request: web.Request) -> web.Response:
        headers = {"Content-Type": METRICS_TYPE, "Cache-Control": "no-store"}
        response = web.Response(body=generate_latest(self._registry), headers=headers)
        response.enable_compression()
        return response


def _told(health: Health) -> web.Response:
    if health.ok:
        return text_answer("ok\n")
    return text_answer("".join(f"not ok: {reason}\n" for reason in health.reasons or ("no reason given",)), status=503)
