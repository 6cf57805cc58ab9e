"""A starved pod's probe times out on a real kubelet; Rematch moves it to a node with room; its probes succeed."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from time import monotonic

import pytest

from loadtests.nodes.apps import PORT, LabApp, ProbeTimes
from loadtests.workloads.http_client import http_get
from tests.nodes.namespace import LabNamespace, hog

pytestmark = [pytest.mark.nodes, pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(300)]

PERIODS = [int(period) for period in os.environ.get("REMATCH_PROBE_PERIODS", "10").split(",")]
"""Of the probes, in seconds. 10 is Kubernetes' default."""
STARVED = LabApp("starved", cpu="5m", environment={"PROBE_ITERATIONS": "10000000"})


async def test_a_pod_starved_by_its_neighbour_is_moved_and_recovers(ns: LabNamespace) -> None:
    await ns.deploy(hog("150m"), "node2")
    await ns.deploy(STARVED, "node2")
    starved = await ns.pod("starved")
    async with ns.controller():
        await ns.control("hog", "burn?threads=4&seconds=120")
        await ns.until(lambda: ns.moved("starved", "node2"), "the starved pod is Ready elsewhere")
        await ns.until(lambda: ns.is_at_peace("starved"), "its probes are answered there")
    found = await ns.events("Unhealthy", uid=starved["metadata"]["uid"])
    assert any("Liveness probe failed" in event["message"] for event in found)
    assert await ns.events("Moving", uid=starved["metadata"]["uid"])
    assert await ns.node_of("hog") == "node2"


@pytest.mark.timeout(400)
@pytest.mark.parametrize("period", PERIODS)
async def test_the_move_begins_before_the_second_kill(ns: LabNamespace, period: int) -> None:
    """Three failures kill, as by default. docs/causes.md has the delays of simulated time, and these beside them."""
    await ns.deploy(hog("150m"), "node2")
    await ns.deploy(replace(STARVED, probe=ProbeTimes(period=period, failures=3)), "node2")
    uid = (await ns.pod("starved"))["metadata"]["uid"]
    async with ns.controller():
        await ns.until(lambda: ns.is_at_peace("starved"), "its probes are answered")
        await ns.control("hog", "burn?threads=4&seconds=240")
        await ns.until(lambda: _has_failed(ns, uid), "a probe has failed", deadline=120.0)
        first_failure = monotonic()
        await ns.until(lambda: _moving(ns, uid), "the move has begun", deadline=240.0)
        print(f"probe every {period} s: the move began {monotonic() - first_failure:.1f} s after the first failure")
        killed = [each for each in await ns.events("Killing", uid=uid) if "failed liveness probe" in each["message"]]
        await ns.until(lambda: ns.moved("starved", "node2"), "the starved pod is Ready elsewhere")
    assert sum(int(event.get("count") or 1) for event in killed) < 2


async def _has_failed(ns: LabNamespace, uid: str) -> bool:
    return any("Liveness probe failed" in event["message"] for event in await ns.events("Unhealthy", uid=uid))


async def _moving(ns: LabNamespace, uid: str) -> bool:
    return bool(await ns.events("Moving", uid=uid))


async def test_a_wrong_request_is_mended_by_a_better_place(ns: LabNamespace) -> None:
    """Three apps ask for 5m each and need 120m to 180m each, by the machine's speed: a node of 250m cannot serve them,
    whatever it believes."""
    names = ("ada", "ben", "cleo")
    patient = ProbeTimes(failures=20)
    for name in names:
        environment = {"ITERATIONS": "7000000", "WORKERS": "1", "BACKLOG": "20"}
        await ns.deploy(LabApp(name, cpu="5m", environment=environment, probe=patient), "node2")
    async with loaded(ns, names), ns.controller():
        await ns.until(lambda: _somebody_moved(ns, names), "one of the three has left node2")
        await ns.until(lambda: _all_ready(ns, names), "all three are Ready")
    assert {await ns.node_of(name) for name in names} - {"node2"}


async def test_a_broken_app_is_not_moved_and_it_says_why(ns: LabNamespace) -> None:
    broken = LabApp("broken", environment={"BREAK_AFTER_MS": "6000"})
    await ns.deploy(broken, "node1")
    pod = await ns.pod("broken")
    async with ns.controller() as controller:

        async def says_so() -> bool:
            waits = [
                each for each in await controller.decisions() if each.pod and each.pod.endswith(pod["metadata"]["name"])
            ]
            return any(each.reason == "appFails" for each in waits)

        await ns.until(says_so, "the decision says that the app itself fails")
        overview = await controller.overview()
    assert overview.moves == 0
    assert (await ns.pod("broken"))["metadata"]["uid"] == pod["metadata"]["uid"]
    found = await ns.events("RematchWaits", uid=pod["metadata"]["uid"])
    assert any("appFails" in event["message"] for event in found)


async def _somebody_moved(ns: LabNamespace, names: tuple[str, ...]) -> bool:
    return any([await ns.moved(name, "node2") for name in names])


async def _all_ready(ns: LabNamespace, names: tuple[str, ...]) -> bool:
    return all([await ns.is_ready(name) for name in names])


@asynccontextmanager
async def loaded(ns: LabNamespace, names: tuple[str, ...], rate: float = 12.0) -> AsyncIterator[None]:
    """Requests at a steady rate to each app, wherever it is, until the end."""
    tasks = [asyncio.create_task(_ask(ns, name, rate)) for name in names]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _ask(ns: LabNamespace, name: str, rate: float) -> None:
    pending: set[asyncio.Task[object]] = set()
    while True:
        pods = await ns.pods(name)
        address = pods[0]["status"].get("podIP") if pods else None
        for _ in range(round(rate)):
            if address:
                task: asyncio.Task[object] = asyncio.create_task(http_get(address, PORT, "/", 2.0))
                pending.add(task)
                task.add_done_callback(pending.discard)
            await asyncio.sleep(1 / rate)
