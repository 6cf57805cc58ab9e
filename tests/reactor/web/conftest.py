from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from aiohttp.test_utils import TestClient, TestServer
from prometheus_client import CollectorRegistry, Counter

from reactor.web.server import build_app
from reactor.web.stream import Pace
from tests.reactor.web.small_view import Client, HandClock, SmallHealth, SmallSource


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def source() -> SmallSource:
    return SmallSource()


@pytest.fixture
def health() -> SmallHealth:
    return SmallHealth()


@pytest.fixture
def pace() -> Pace:
    return Pace(heartbeat=15.0, interval=0.5, most_streams=2)


@pytest.fixture
async def client(source: SmallSource, health: SmallHealth, clock: HandClock, pace: Pace) -> AsyncIterator[Client]:
    registry = CollectorRegistry()
    Counter("rematch_moves", "Moves.", registry=registry).inc(3)
    server = TestServer(build_app(source, health, registry, clock, pace=pace), host="127.0.0.1")
    async with TestClient(server) as opened:
        yield opened
