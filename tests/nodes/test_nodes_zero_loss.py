"""No request is lost to moves on real nodes, and a starved pair behind a disruption budget is cured."""

from __future__ import annotations

import asyncio

import pytest

from loadtests.experiments.bnip.live.design import LOADS, Change
from loadtests.experiments.bnip.live.updates import UpdateBench
from loadtests.nodes import Lab
from loadtests.nodes.apps import LabApp, ProbeTimes
from loadtests.nodes.in_cluster import install_policies
from loadtests.zero_loss.bench import Bench
from loadtests.zero_loss.design import APPS, Way
from loadtests.zero_loss.report import together
from loadtests.zero_loss.run import Measured, measure, moves_left
from tests.nodes.namespace import LabNamespace, hog

pytestmark = [pytest.mark.nodes, pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(600)]

DEFAULT_PROBES = ProbeTimes(period=10, timeout=1, failures=3)
CURED_SECONDS = 200.0


async def test_no_request_is_lost_to_the_chosen_surges(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> None:
    """`rematch lab zero-loss` is the long form. Pods of kube-scheduler, moved by requests, each once."""
    folder = tmp_path_factory.mktemp("zero-loss")
    async with Bench.open(lab, ("node1", "node2", "node3"), APPS, folder) as bench:
        legs: list[Measured] = []
        await measure(bench, Way.CHOSEN, moves_left(APPS, 1, Way.CHOSEN, ()), 5.0, legs.append, print)
    assert [problem for leg in legs for problem in leg.problems] == []
    rows = together((), [row for leg in legs for row in leg.rows])
    assert {row.app: row.lost for row in rows} == {moved.app.name: 0 for moved in APPS}
    assert {row.app: row.moves for row in rows} == {moved.app.name: moved.app.replicas for moved in APPS}
    strategies = {row.app: row.strategies for row in rows}
    assert strategies["hook-1"] == {"scaleSurge": 1}
    assert strategies["exits-2"] == {"releaseSurge": 2}


async def test_no_request_is_lost_to_an_update_with_the_ingredients_of_bnip(
    lab: Lab, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """`rematch lab experiment bnip --live` is the long form, with plain pods and moves beside it."""
    folder, (new_connections, _) = tmp_path_factory.mktemp("updates"), LOADS
    async with UpdateBench.on(lab, ("node1", "node2", "node3"), folder, seconds=15.0) as bench:
        run = await bench.run(Change.UPDATE, new_connections, 1, rate=50.0)
    assert (run.lost, run.in_time) == (0, True)
    assert run.requests == pytest.approx(15 * 50, rel=0.05)


async def test_a_starved_pair_behind_a_budget_that_allows_nothing_is_surged(ns: LabNamespace) -> None:
    """Both replicas fail on one node, so the budget is spent and every eviction would be refused."""
    await install_policies(ns.lab.api)
    await ns.deploy(hog("150m"), "node2")
    starved = LabApp(
        "pair", cpu="5m", environment={"PROBE_ITERATIONS": "10000000"}, probe=DEFAULT_PROBES, replicas=2
    )  # fmt: skip
    await ns.deploy(starved, "node2", "node2")
    budget = {"metadata": {"name": "pair"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "pair"}}}}
    await ns.lab.api.create(f"/apis/policy/v1/namespaces/{ns.name}/poddisruptionbudgets", budget)
    await ns.control("hog", f"burn?threads=4&seconds={2 * CURED_SECONDS:g}")
    await ns.until(lambda: _allows_nothing(ns), "the budget is spent", CURED_SECONDS)
    async with ns.controller():  # not before: it would move the first that fails while the budget still allows it
        await ns.until(lambda: _is_cured(ns), "the pair is Ready and no probe fails any more", CURED_SECONDS)


async def _allows_nothing(ns: LabNamespace) -> bool:
    """A new budget allows nothing, too, until its pods are counted."""
    status = (await ns.lab.api.get(f"/apis/policy/v1/namespaces/{ns.name}/poddisruptionbudgets/pair"))["status"]
    return bool(status.get("expectedPods") == 2 and status.get("disruptionsAllowed") == 0)


async def _is_cured(ns: LabNamespace) -> bool:
    """At least one is away; the other may have enough without it. No probe fails for more than one period."""
    pods = await ns.pods("pair")
    nodes = [pod["spec"].get("nodeName", "node2") for pod in pods]
    if len(pods) != 2 or nodes == ["node2", "node2"] or not await ns.is_ready("pair"):
        return False
    names = [pod["metadata"]["name"] for pod in pods]
    before = [await ns.liveness_failures(name) for name in names]
    await asyncio.sleep(1.2 * DEFAULT_PROBES.period)
    return await ns.is_ready("pair") and before == [await ns.liveness_failures(name) for name in names]
