from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from reactor.cluster.connection import KubernetesConnection, open_connection
from tests.reactor.cluster.helpers import FakeClock, Reports, kubeconfig
from tests.reactor.cluster.misbehaving import MisbehavingServer


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def reports() -> Reports:
    return Reports()


@pytest.fixture
async def server() -> AsyncIterator[MisbehavingServer]:
    async with MisbehavingServer().serving() as running:
        yield running


@pytest.fixture
async def connection(server: MisbehavingServer, tmp_path: Path) -> AsyncIterator[KubernetesConnection]:
    opened = await open_connection(kubeconfig(tmp_path, server.url))
    yield opened
    await opened.close()
