"""The experiment's driver on a small lab of its own: placed by kube-scheduler, loaded through kube-proxy, read back."""

from __future__ import annotations

import pytest

from loadtests.experiments.stable.apps import app_names
from loadtests.experiments.stable.design import SHORT, Design
from loadtests.experiments.stable.driver import SessionSpec
from loadtests.experiments.stable.real.driver import TOOLS, RealDriver
from loadtests.workloads.placement import App, NodeSpec
from loadtests.workloads.samples import RequestOutcome

MIB = 1024 * 1024
SMALL = Design(SHORT, (1,), (), apps=4, nodes=(NodeSpec("node1", 0.3, 768 * MIB), NodeSpec("node2", 0.2, 768 * MIB)))

pytestmark = [pytest.mark.nodes, pytest.mark.timeout(240)]


@pytest.mark.parametrize("tool", TOOLS)
async def test_a_step_of_the_experiment(tool: str) -> None:
    apps = tuple(App(name, 2.0) for name in app_names(SMALL))
    async with RealDriver.open(SMALL, tool) as driver:
        default = await driver.default_placement(1)
        assert set(default) == {app.name for app in apps}
        swapped = {app: "node1" if node == "node2" else "node2" for app, node in default.items()}
        async with driver.session(SessionSpec(1, apps, swapped, SHORT, None)) as session:
            seen = await (await session.step(5.0, 3.0))()
            assert await session.placement() == swapped
    assert len(seen.samples) == pytest.approx(60, abs=4)
    assert {sample.app for sample in seen.samples} == set(default)
    assert sum(sample.outcome is RequestOutcome.OK for sample in seen.samples) >= 0.9 * len(seen.samples)
    assert 0.02 < sum(seen.cpu.values()) < 0.4
    assert seen.without_node == 0
    assert seen.machine is not None
