"""Needs from the history: distance by the mean, quota by the peak, the same after a restart."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace as replace_record

from matching.problem import Options
from matching.serialization import problem_from_json, problem_to_json
from reactor.cluster.records import Container, Probe
from reactor.planning.problem_builder import ProblemBuilder
from reactor.settings.planner import make_planner
from storage.limits import Limits
from storage.store import Store
from tests.support.clock import VirtualClock
from tests.support.cluster import GIB, make_pending, make_pod, make_settings
from tests.support.rig import Rig
from tests.support.week_of_usage import END, fill_week, lists_after_start, preference_lists, problem_of, restarted

CHILD = """
import asyncio, json, os, pathlib, signal, sys
from tests.support.week_of_usage import lists_after_start
print(json.dumps(asyncio.run(lists_after_start(pathlib.Path(sys.argv[1]), fill=True))), flush=True)
"""


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    async with await Store.open(tmp_path / "rematch.db", Limits(flush_seconds=30.0)) as opened:
        yield opened


async def test_after_kill_9_and_a_restart_the_preference_lists_are_the_same(tmp_path: Path) -> None:
    database = tmp_path / "rematch.db"
    before = await _lists_of_a_killed_process(database)
    after = await lists_after_start(database)
    assert after == before
    assert after["nodes"] == ["shop/a-1", "shop/c-1", "shop/b-1"], "by historical CPU"
    without = await lists_after_start(tmp_path / "empty.db")
    assert without["nodes"] == ["shop/b-1", "shop/c-1", "shop/a-1"], "by current CPU"
    assert all(without[pod] != after[pod] for pod in ("shop/a-1", "shop/b-1"))


async def test_mean_and_peak_come_from_the_history(store: Store) -> None:
    await fill_week(store)
    problem = problem_of(await restarted(store))
    pods = {pod.key: pod for pod in problem.pods}
    assert pods["shop/a-1"].mean == pytest.approx((3.3, 0.5 * GIB), rel=0.006)
    assert pods["shop/a-1"].usage[0] == 0.1
    assert pods["shop/a-1"].peak[0] == pytest.approx(3.6, rel=0.006)
    assert pods["shop/b-1"].peak[0] >= 2.5, "current usage is the floor"
    assert pods["shop/b-1"].idle_cpu is None
    assert (
        problem.estimates == "distances by the mean and peaks by the p99 of up to 7d of usage, for 3 of 3 running pods"
    )
    assert problem_from_json(problem_to_json(problem)) == problem
    assert problem.estimates in make_planner("stable", {}).plan(problem).notes


async def test_the_cpu_limit_is_the_cap(store: Store) -> None:
    await fill_week(store)
    rig = await restarted(store)
    limited = Container("srv", Probe(), 0, END - 3600, cpu_limit=1.5)
    rig.put(make_pod("a-1", created=END - 10 * 86400, containers=(limited,)))
    peaks = {pod.key: pod.peak[0] for pod in problem_of(rig).pods}
    assert peaks["shop/a-1"] == 1.5


async def test_a_short_history_does_not_count(store: Store) -> None:
    await fill_week(store)
    rig = Rig(make_settings(history={"minimum": 8 * 86400, "window": 9 * 86400}), VirtualClock(END + 300))
    problem = problem_of(await restarted(store, rig))
    assert {pod.mean for pod in problem.pods} == {()}
    assert problem.estimates == ""
    assert preference_lists(problem)["nodes"] == ["shop/b-1", "shop/c-1", "shop/a-1"]


async def test_nodes_can_rank_by_cpu_while_unloaded(store: Store) -> None:
    await fill_week(store)
    rig = Rig(make_settings(history={"rank_by_idle_cpu": True}), VirtualClock(END + 300))
    problem = problem_of(await restarted(store, rig))
    idle = {pod.key: pod.idle_cpu for pod in problem.pods}
    assert idle["shop/a-1"] == pytest.approx(3.0, rel=0.06)
    assert problem.estimates.endswith(", ranks by idle CPU")


async def test_replacements_and_pending_pods_inherit_from_their_workload(store: Store) -> None:
    await fill_week(store, {"shop/ReplicaSet/web": 2.0}, "workload")
    rig = await restarted(store)
    rig.put(replace_record(make_pod("web-x7"), created=END), make_pending("web-x8"))
    rig.measure({"web-x7": 0.1}, {})
    snapshot = rig.snapshot()
    builder = ProblemBuilder(snapshot)
    for pod in snapshot.cluster.pods.values():
        builder.add(pod)
    needs = {pod.key: (pod.mean, pod.peak) for pod in builder.problem(Options()).pods}
    for name in ("shop/web-x7", "shop/web-x8"):
        mean, peak = needs[name]
        assert mean[0] == pytest.approx(2.2, rel=0.006)
        assert peak[0] == pytest.approx(2.4, rel=0.006)


async def _lists_of_a_killed_process(database: Path) -> object:
    import asyncio

    def run() -> object:
        code = f"{CHILD}\nos.kill(os.getpid(), signal.SIGKILL)"
        environment = {**os.environ, "PYTHONPATH": "."}
        done = subprocess.run(
            [sys.executable, "-c", code, str(database)],
            capture_output=True,
            text=True,
            env=environment,
            timeout=50,
            check=False,
        )
        assert done.returncode == -signal.SIGKILL, done.stderr
        return json.loads(done.stdout)

    return await asyncio.to_thread(run)
