"""The controller as a pod on a fourth node, killed in the middle of a move."""

from __future__ import annotations

import os
import signal
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from loadtests.nodes.apps import LabApp, ProbeTimes
from loadtests.nodes.in_cluster import NAMESPACE, deploy_controller, remove_controller, url_of
from loadtests.workloads.api import has_condition
from reactor.decision.eligibility import DO_NOT_MOVE
from tests.nodes.namespace import LabNamespace, hog, settings_for

pytestmark = [pytest.mark.nodes, pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(600)]

CALM = ("calm-1", "calm-2", "calm-3")
LATE = ("late-1", "late-2")
SLOW_PROBE = {"PROBE_ITERATIONS": "10000000"}
SLOW_START = {**SLOW_PROBE, "STARTUP_ITERATIONS": "600000000"}
"""The replacement of a moved pod takes seconds to be Ready, so that the move can be interrupted."""


@pytest_asyncio.fixture(loop_scope="session")
async def store(ns: LabNamespace) -> AsyncIterator[Path]:
    """Of a controller that runs as a pod. It comes after the apps that the test places itself, and goes before
    other tests' pods: it would bind them."""
    patient = ProbeTimes(failures=100)
    await ns.deploy(hog("150m"), "node2")
    await ns.deploy(LabApp("starved", cpu="5m", environment=SLOW_START, probe=patient), "node2")
    stays = {DO_NOT_MOVE: "true"}
    await ns.deploy(LabApp("sufferer", cpu="5m", environment=SLOW_PROBE, probe=patient, annotations=stays), "node2")
    folder = await deploy_controller(ns.lab, "node4", settings_for(ns.lab, ns.name))
    yield folder / "rematch.db"
    await remove_controller(ns.lab)


async def test_a_controller_killed_in_mid_run_leaves_nothing_pending(ns: LabNamespace, store: Path) -> None:
    ours = LabNamespace(ns.lab, NAMESPACE, ns.folder)
    await ns.until(lambda: _controller_ready(ours), "the controller's pod is Ready", 200)
    for name in CALM:
        await ns.deploy(LabApp(name))
    await ns.until(lambda: _all_ready(ns, CALM), "the controller's pod binds what is pending", 90)

    await ns.control("hog", "burn?threads=4&seconds=240")
    await ns.until(lambda: _is_leaving(ns, "node2"), "the starved pod is being moved", 200)
    first = await _controller_pod(ours)
    known = await _failures_known(ns, first)
    await _kill(ours, first)
    for name in LATE:
        await ns.deploy(LabApp(name))

    await ns.until(lambda: _another_is_ready(ours, first), "a new controller is Ready", 200)
    assert await _failures_known(ns, await _controller_pod(ours)) >= known > 0
    everyone = ("hog", "starved", *CALM, *LATE)
    await ns.until(lambda: _all_ready(ns, everyone), "nobody is left Pending", 200)
    assert await ns.node_of("starved") != "node2"
    await ns.until(lambda: _all_ended(store), "the new controller carries the move to its end")
    moves = [row for row in _rows(store, "moves") if "/starved-" in row["pod_key"]]
    assert [row["outcome"] for row in moves] == ["done"], [dict(row) for row in moves]
    placed = {row["pod_key"] for row in _rows(store, "decisions") if row["kind"] == "place"}
    assert all(any(f"/{name}-" in key for key in placed) for name in (*CALM, *LATE)), "from before and after the kill"


async def _controller_pod(ours: LabNamespace) -> dict[str, Any]:
    found = await ours.lab.api.get(f"/api/v1/namespaces/{NAMESPACE}/pods")
    (pod,) = [pod for pod in found["items"] if "deletionTimestamp" not in pod["metadata"]]
    return dict(pod)


async def _failures_known(ns: LabNamespace, controller: dict[str, Any]) -> float:
    """What the controller counts against a pod that suffers and may not be moved; undecayed."""
    sufferer = (await ns.pod("sufferer"))["metadata"]["name"]
    return sum((await ns.failures_by(url_of(controller), sufferer)).values())


async def _controller_ready(ours: LabNamespace) -> bool:
    return has_condition(await _controller_pod(ours), "Ready")


async def _another_is_ready(ours: LabNamespace, first: dict[str, Any]) -> bool:
    pod = await _controller_pod(ours)
    return bool(pod["metadata"]["uid"] != first["metadata"]["uid"]) and await _controller_ready(ours)


async def _kill(ours: LabNamespace, pod: dict[str, Any]) -> None:
    """The process first, and without a word: a pod that is only deleted is asked to end and tidies up."""
    node = ours.lab.nodes["node4"]
    for pid in filter(_is_controller, node.cgroups.members(node.group)):
        os.kill(pid, signal.SIGKILL)
    path = f"/api/v1/namespaces/{NAMESPACE}/pods/{pod['metadata']['name']}"
    await ours.lab.api.delete(path, {"gracePeriodSeconds": 0})


def _is_controller(pid: int) -> bool:
    try:
        return b"reactor.cli.main" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except FileNotFoundError:
        return False


async def _is_leaving(ns: LabNamespace, node: str) -> bool:
    pods = (await ns.lab.api.get(f"/api/v1/namespaces/{ns.name}/pods", {"labelSelector": "app=starved"}))["items"]
    return any("deletionTimestamp" in pod["metadata"] or pod["spec"].get("nodeName", node) != node for pod in pods)


async def _all_ready(ns: LabNamespace, names: tuple[str, ...]) -> bool:
    return all([await ns.is_ready(name) for name in names])


async def _all_ended(store: Path) -> bool:
    return all(row["ended"] is not None for row in _rows(store, "moves"))


def _rows(store: Path, table: str) -> list[sqlite3.Row]:
    """Read beside the controller, which goes on writing."""
    with closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as database:
        database.row_factory = sqlite3.Row
        return database.execute(f"SELECT * FROM {table}").fetchall()  # the table is one of ours
