"""The whole way through the house, in one process: a probe fails, a pod moves, everything is on record."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from loadtests.benchmarks.fake_pods import FakePodCluster, Size, fake_pod_cluster
from loadtests.embedded.objects import name_of
from loadtests.embedded.resources import EVENTS, PODS, Json
from reactor.app import Controller, Options, open_controller
from reactor.clock import SystemClock
from storage.store import Store

SETTINGS = "mode: {mode}\ndecision: {{cooldown: 300s}}\nmetrics: {{metricsApi: {{interval: 500ms}}}}\n"
SIZE = Size(nodes=6, pods_per_node=5)


@pytest.fixture
async def paper() -> AsyncIterator[FakePodCluster]:
    async with fake_pod_cluster(SIZE, SystemClock()) as cluster:
        yield cluster


@asynccontextmanager
async def running(paper: FakePodCluster, folder: Path, mode: str) -> AsyncIterator[Controller]:
    settings = folder / "settings.yaml"
    settings.write_text(SETTINGS.format(mode=mode))
    kubeconfig = paper.cluster.kubeconfig(folder / "kubeconfig")
    options = Options(store=folder / "rematch.db", kubeconfig=str(kubeconfig), settings_file=settings)
    async with open_controller(options) as live:
        job = asyncio.create_task(live.run())
        try:
            await until(lambda: measured(live.controller) and not live.controller.acting.hindrance)
            yield live.controller
        finally:
            job.cancel()
            await asyncio.gather(job, return_exceptions=True)


def measured(controller: Controller) -> bool:
    if not controller.state.synced:
        return False
    view = controller.state.freeze(controller.executor.active_moves())
    return all(view.usage.node_usage(name).known for name in view.cluster.nodes)


async def until(condition: Callable[[], bool], deadline: float = 20.0) -> None:
    async with asyncio.timeout(deadline):
        while not condition():
            await asyncio.sleep(0.02)


def pods_of(paper: FakePodCluster, app: str) -> list[Json]:
    return [stored.obj for stored in paper.cluster.store.all(PODS) if stored.obj["metadata"]["labels"]["app"] == app]


def events_about(paper: FakePodCluster, pod: str) -> set[str]:
    events = [stored.obj for stored in paper.cluster.store.all(EVENTS)]
    return {event["reason"] for event in events if event["involvedObject"]["name"] == pod}


async def test_a_failing_probe_becomes_a_better_placement(paper: FakePodCluster, tmp_path: Path) -> None:
    pod = paper.crowded_pod(0)
    app, old_node = pod["metadata"]["labels"]["app"], pod["spec"]["nodeName"]
    async with running(paper, tmp_path, "act") as controller:
        paper.report_unhealthy(pod)
        await until(lambda: [p["spec"].get("nodeName") for p in pods_of(paper, app)] not in ([old_node], [None], []))
        await until(lambda: not controller.executor.busy)
        (replacement,) = pods_of(paper, app)
        await until(lambda: "Moved" in events_about(paper, name_of(replacement)))
        await controller.store.flush()
        (move,) = await controller.store.moves()
        (plan,) = await controller.store.plans()
    assert {"Unhappy", "Moving"} <= events_about(paper, name_of(pod))
    assert "Scheduled" in events_about(paper, name_of(replacement))
    assert (move.from_node, move.to_node, move.outcome) == (old_node, replacement["spec"]["nodeName"], "done")
    assert move.replacement_uid == replacement["metadata"]["uid"]
    assert move.plan_id == plan.id
    assert plan.feasible


async def test_observe_touches_nothing_and_says_what_it_would_do(paper: FakePodCluster, tmp_path: Path) -> None:
    pod = paper.crowded_pod(1)
    async with running(paper, tmp_path, "observe") as controller:
        paper.report_unhealthy(pod)
        await until(lambda: "Unhappy" in events_about(paper, name_of(pod)))
        await controller.store.flush()
        (plan,) = await controller.store.plans()
        assert await controller.store.moves() == []
    assert [p["metadata"]["uid"] for p in pods_of(paper, pod["metadata"]["labels"]["app"])] == [pod["metadata"]["uid"]]
    assert plan.moves >= 1


async def test_switching_to_act_acts_without_a_restart(paper: FakePodCluster, tmp_path: Path) -> None:
    pod = paper.crowded_pod(2)
    async with running(paper, tmp_path, "observe") as controller:
        paper.report_unhealthy(pod)
        await until(lambda: "Unhappy" in events_about(paper, name_of(pod)))
        (tmp_path / "settings.yaml").write_text("mode: act\ndecision: {cooldown: 0s}\n")
        await until(lambda: pod["metadata"]["uid"] not in [p["metadata"]["uid"] for p in pods_of(paper, _app(pod))])
        await until(lambda: not controller.executor.busy)
    (replacement,) = pods_of(paper, _app(pod))
    assert replacement["spec"]["nodeName"] != pod["spec"]["nodeName"]


async def test_happiness_survives_a_restart(paper: FakePodCluster, tmp_path: Path) -> None:
    pod = paper.crowded_pod(1)
    uid = pod["metadata"]["uid"]
    async with running(paper, tmp_path, "observe") as controller:
        paper.report_unhealthy(pod, count=7)
        await until(lambda: "Unhappy" in events_about(paper, name_of(pod)))
        before = controller.state.probes.counts(uid, SystemClock().now())
    async with await Store.open(tmp_path / "rematch.db") as store:
        assert uid in {row.uid for row in await store.happiness()}
    async with running(paper, tmp_path, "observe") as controller:
        after = controller.state.probes.counts(uid, SystemClock().now())
    assert before.failures == pytest.approx(7, abs=0.5)
    assert after.failures == pytest.approx(before.failures, rel=0.1)


def _app(pod: Json) -> str:
    app: str = pod["metadata"]["labels"]["app"]
    return app
