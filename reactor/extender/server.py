"""The extender's HTTP server: kube-scheduler's verbs, probes and metrics."""

from __future__ import annotations

import ssl
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec
from aiohttp import web
from prometheus_client import CollectorRegistry

from reactor.clock import Clock
from reactor.errors import InputError
from reactor.extender.instruments import ExtenderInstruments
from reactor.extender.messages import Question, parse_question
from reactor.extender.state import ExtenderState
from reactor.web import middleware
from reactor.web.api import Probes
from reactor.web.connections import ConnectionLimits
from reactor.web.server import listening
from reactor.web.view import HealthSource

MOST_BYTES = 8 * 2**20
"""Of one request: a pod of at most 1.5 MiB and 20,000 of the longest node names."""
LIMITS = ConnectionLimits(most=64, most_of_one_address=32, first_request=10.0, one_request=180.0, keep_alive=120.0)
"""kube-scheduler keeps idle connections for 90 s. Were they closed here first, its next request would fail."""

_encoder = msgspec.json.Encoder()


@dataclass(frozen=True, slots=True)
class Address:
    host: str
    port: int
    certificate: Path | None = None
    key: Path | None = None

    def tls(self) -> ssl.SSLContext | None:
        if self.certificate is None and self.key is None:
            return None
        if self.certificate is None or self.key is None:
            raise InputError("--tls-cert-file and --tls-key-file need each other; give both")
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        try:
            context.load_cert_chain(self.certificate, self.key)
        except (OSError, ssl.SSLError) as error:
            raise InputError(f"--tls-cert-file, --tls-key-file: {self.certificate}, {self.key}: {error}") from error
        return context


class Verbs:
    def __init__(self, state: ExtenderState, instruments: ExtenderInstruments, clock: Clock) -> None:
        self._state = state
        self._instruments = instruments
        self._clock = clock

    def routes(self) -> list[web.RouteDef]:
        return [web.post("/prioritize", self.prioritize), web.post("/filter", self.filter)]

    async def prioritize(self, request: web.Request) -> web.Response:
        return await self._answer(request, "prioritize", self._prioritized)

    async def filter(self, request: web.Request) -> web.Response:
        return await self._answer(request, "filter", self._state.answers.filter)

    def _prioritized(self, question: Question) -> object:
        found = self._state.answers.prioritize(question)
        self._instruments.judged.labels(found.judgement).inc()
        return found.hosts

    async def _answer(self, request: web.Request, verb: str, answer: Callable[[Question], object]) -> web.Response:
        try:
            body = await request.read()
            began = time.perf_counter()
            question = parse_question(body)
        except web.HTTPRequestEntityTooLarge:
            return self._refused(request, 413, f"the request has more than {MOST_BYTES} bytes")
        except InputError as error:
            return self._refused(request, 400, str(error))
        encoded = _encoder.encode(answer(question))
        self._instruments.seconds.labels(verb).observe(time.perf_counter() - began)
        self._state.asked = self._clock.now()
        return web.Response(body=encoded, content_type="application/json")

    def _refused(self, request: web.Request, status: int, message: str) -> web.Response:
        self._instruments.refused.inc()
        return middleware.error_response(request, status, message)


@asynccontextmanager
async def serve_extender(
    state: ExtenderState, health: HealthSource | None, registry: CollectorRegistry, clock: Clock, address: Address
) -> AsyncIterator[str]:
    """Serve inside of the context and yield the URL. Without `health` probes and metrics are served elsewhere."""
    instruments = ExtenderInstruments(registry)
    instruments.nodes.labels("known").set_function(lambda: float(state.network.shares(clock.now()).known.sum()))
    instruments.nodes.labels("all").set_function(lambda: float(state.network.nodes))
    app = web.Application(middlewares=[middleware.explain_errors], client_max_size=MOST_BYTES)
    app.on_response_prepare.append(middleware.add_headers)
    app.add_routes(Verbs(state, instruments, clock).routes())
    if health is not None:
        app.add_routes(Probes(health, registry).routes())
    async with listening(app, address.host, address.port, LIMITS, address.tls()) as url:
        yield url
