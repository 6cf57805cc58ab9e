"""A starved pod's probe times out on a real kubelet; Rematch moves it to a node with room; its probes succeed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from loadtests.nodes.apps import PORT, App, ProbeTimes
from loadtests.workloads.http_client import http_get
from tests.nodes.stage import Stage, hog

pytestmark = [pytest.mark.nodes, pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(300)]

STARVED = App("starved", cpu="5m", environment={"PROBE_ITERATIONS": "10000000"})


async def test_a_pod_starved_by_its_neighbour_is_moved_and_recovers(stage: Stage) -> None:
    await stage.deploy(hog("150m"), "node2")
    await stage.deploy(STARVED, "node2")
    starved = await stage.pod("starved")
    async with stage.controller():
        await stage.control("hog", "burn?threads=4&seconds=120")
        await stage.until(lambda: stage.moved("starved", "node2"), "the starved pod is Ready elsewhere")
        await stage.until(lambda: stage.is_at_peace("starved"), "its probes are answered there")
    told = await stage.events("Unhealthy", uid=starved["metadata"]["uid"])
    assert any("Liveness probe failed" in event["message"] for event in told)
    assert await stage.events("Moving", uid=starved["metadata"]["uid"])
    assert await stage.node_of("hog") == "node2"


async def test_a_wrong_request_is_mended_by_a_better_place(stage: Stage) -> None:
    """Three apps ask for 5m each and need about 110m each: a node of 250m cannot serve them, whatever it believes."""
    names = ("ada", "ben", "cleo")
    patient = ProbeTimes(failures=20)
    for name in names:
        environment = {"ITERATIONS": "4000000", "WORKERS": "1", "BACKLOG": "20"}
        await stage.deploy(App(name, cpu="5m", environment=environment, probe=patient), "node2")
    async with loaded(stage, names), stage.controller():
        await stage.until(lambda: _somebody_moved(stage, names), "one of the three has left node2")
        await stage.until(lambda: _all_ready(stage, names), "all three are Ready")
    assert {await stage.node_of(name) for name in names} - {"node2"}


async def test_a_broken_app_is_not_moved_and_it_says_why(stage: Stage) -> None:
    broken = App("broken", environment={"BREAK_AFTER_MS": "6000"})
    await stage.deploy(broken, "node1")
    pod = await stage.pod("broken")
    async with stage.controller() as controller:

        async def says_so() -> bool:
            waits = [
                each for each in await controller.decisions() if each.pod and each.pod.endswith(pod["metadata"]["name"])
            ]
            return any(each.reason == "moveCannotHelp" for each in waits)

        await stage.until(says_so, "the decision says that a move cannot help")
        overview = await controller.overview()
    assert overview.moves == 0
    assert (await stage.pod("broken"))["metadata"]["uid"] == pod["metadata"]["uid"]
    told = await stage.events("RematchWaits", uid=pod["metadata"]["uid"])
    assert any("moveCannotHelp" in event["message"] for event in told)


async def _somebody_moved(stage: Stage, names: tuple[str, ...]) -> bool:
    return any([await stage.moved(name, "node2") for name in names])


async def _all_ready(stage: Stage, names: tuple[str, ...]) -> bool:
    return all([await stage.is_ready(name) for name in names])


@asynccontextmanager
async def loaded(stage: Stage, names: tuple[str, ...], rate: float = 12.0) -> AsyncIterator[None]:
    """Requests at a steady rate to each app, wherever it is, until the end."""
    tasks = [asyncio.create_task(_ask(stage, name, rate)) for name in names]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _ask(stage: Stage, name: str, rate: float) -> None:
    pending: set[asyncio.Task[object]] = set()
    while True:
        pods = await stage.pods(name)
        address = pods[0]["status"].get("podIP") if pods else None
        for _ in range(round(rate)):
            if address:
                task: asyncio.Task[object] = asyncio.create_task(http_get(address, PORT, "/", 2.0))
                pending.add(task)
                task.add_done_callback(pending.discard)
            await asyncio.sleep(1 / rate)
