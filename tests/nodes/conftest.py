"""One lab for all tests: real nodes are worth their ten seconds once."""

from __future__ import annotations

import re
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from loadtests.nodes import KubeletPace, Lab, LabNodeSpec, LabOptions, real_nodes
from loadtests.nodes.in_cluster import grant_rights
from tests.nodes.namespace import LabNamespace

PACE = KubeletPace(housekeeping=2, status=4, lease=8, pressure_transition=20)
CONTROLLER_TAINT = "lab/controller=only:NoSchedule"
NODES = (
    LabNodeSpec("node1", 600, clock_ahead=-300),
    LabNodeSpec("node2", 250, eviction_mib=200),
    LabNodeSpec("node3", 400, clock_ahead=300),
    LabNodeSpec("node4", 500, 1536, taint=CONTROLLER_TAINT),
)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def lab() -> AsyncIterator[Lab]:
    options = LabOptions(NODES, pace=PACE, node_grace=10, scrape_interval=2)
    async with real_nodes(options) as running:
        await grant_rights(running.api)
        yield running


@pytest_asyncio.fixture(loop_scope="session")
async def ns(lab: Lab, request: pytest.FixtureRequest) -> AsyncIterator[LabNamespace]:
    namespace = re.sub(r"[^a-z0-9]+", "-", request.node.name.removeprefix("test_"))[:50].strip("-")
    await lab.api.create("/api/v1/namespaces", {"metadata": {"name": namespace}})
    with tempfile.TemporaryDirectory(prefix="rematch-nodes-") as folder:
        made = LabNamespace(lab, namespace, Path(folder))
        yield made
        await made.clear()
