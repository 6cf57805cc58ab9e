"""An embedded cluster, in process and over HTTP."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator

import aiohttp
import pytest

from loadtests.embedded import ClusterOptions, EmbeddedCluster, ObjectApi, ObjectStore
from loadtests.embedded.plain_client import PlainClient
from loadtests.embedded.resources import NAMESPACES


class FixedClock:
    """A clock that stands where it is put."""

    def __init__(self, at: float) -> None:
        self.at = at

    def now(self) -> float:
        return self.at

    def monotonic(self) -> float:
        return self.at

    async def sleep(self, seconds: float) -> None:
        self.at += seconds


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock(1_800_000_000.0)


@pytest.fixture
def objects(clock: FixedClock) -> ObjectApi:
    """The API without a server and without controllers."""
    api = ObjectApi(ObjectStore(), clock, random.Random(1))
    api.create(NAMESPACES, {"metadata": {"name": "default"}})
    return api


@pytest.fixture
async def cluster() -> AsyncIterator[EmbeddedCluster]:
    async with EmbeddedCluster(ClusterOptions(seed=1)) as running:
        yield running


@pytest.fixture
async def client(cluster: EmbeddedCluster) -> AsyncIterator[PlainClient]:
    async with aiohttp.ClientSession(read_bufsize=2**20) as session:
        yield PlainClient(cluster.url, session, "default")
