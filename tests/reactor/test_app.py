"""The whole controller on the embedded cluster: what its parts promise together, and what its page shows."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import numpy as np
import pytest
import structlog

from loadtests.embedded.resources import CONFIGMAPS, DEPLOYMENTS, PODDISRUPTIONBUDGETS, PODS, Json
from reactor.app import LiveController, Options, open_controller
from reactor.cli.explain import Explained, render
from reactor.cluster.kinds import ObjectName
from reactor.errors import InputError
from reactor.forecasts.models import load
from reactor.history.levels import FIVE_MINUTES, Axis
from reactor.history.series import SeriesIndex
from reactor.settings.model import Mode
from reactor.web.live import LiveView
from reactor.web.query import FindQuery, OverviewQuery, UsageQuery
from reactor.web.readers import HealthReader
from reactor.web.server import live_view, serve
from storage import StorageError
from storage.rows import LoadBinRow, MoveCheckRow, MoveRow, StartupRow
from storage.store import Store
from tests.reactor.forecasts.recorded import record
from tests.support.clock import eventually
from tests.support.cluster import make_settings
from tests.support.shop import Shop, open_shop

FAST = "triggers: {evaluationInterval: 1s}\nmetrics: {metricsApi: {interval: 1s}}\n"


@pytest.fixture
async def shop() -> AsyncIterator[Shop]:
    async with open_shop() as opened:
        yield opened


@asynccontextmanager
async def controlled(shop: Shop, folder: Path, text: str = "", **options: object) -> AsyncIterator[LiveController]:
    settings = folder / "settings.yaml"
    settings.write_text(FAST + text)
    chosen = Options(
        store=folder / "rematch.db",
        kubeconfig=str(shop.cluster.kubeconfig(folder / "kubeconfig")),
        settings_file=None if "config_map" in options else settings,
        **options,  # type: ignore[arg-type]
    )
    async with open_controller(chosen) as live:
        job = asyncio.create_task(live.run())
        try:
            await eventually(lambda: live.controller.state.synced)
            await eventually(lambda: live.election is None or not live.controller.acting.journal_problem)
            yield live
        finally:
            job.cancel()
            await asyncio.gather(job, return_exceptions=True)


def measured(live: LiveController) -> Callable[[], bool]:
    usage, clock = live.controller.state.usage, live.controller.clock
    return lambda: all(usage.freeze(clock.now()).node_usage(name).known for name in ("n1", "n2"))


async def test_in_mode_act_the_failing_pod_gets_a_better_node(shop: Shop, tmp_path: Path) -> None:
    async with controlled(shop, tmp_path, "mode: act") as live:
        await eventually(measured(live))
        old = shop.pods("web")[0]["metadata"]["name"]
        shop.fail("web")
        await eventually(lambda: shop.where("web") == ["n2"])
        await eventually(lambda: "Moved" in shop.said())

        await live.controller.store.flush()
        found = await live_view(live).find_pods(FindQuery(name=old))
        assert [pod.name for pod in found.pods] == [shop.pods("web")[0]["metadata"]["name"]]
        assert found.note == f"default/{old} was moved; this is the pod that replaces it"
        page = await live_view(live).pod("default", found.pods[0].name)
        assert page is not None
        (why,) = [one for entry in page.history for one in entry.unhappy]
        assert why.pod == f"default/{old}"
        assert {"prior", "load", "probes"} <= {part.name for part in why.evidence}
        text = render(Explained(found, page))
        assert f"Place of default/{old} when plan " in text
        assert shop.where("db") == ["n1"]
        assert {"Unhappy", "Moving", "Scheduled"} <= set(shop.said())
    async with open_controller(Options(tmp_path / "rematch.db", str(tmp_path / "kubeconfig"))) as again:
        (move,) = await again.controller.store.moves()
        assert move.outcome == "done"
        lineage = again.controller.memory.cooldowns.lineage
        assert lineage[move.replacement_uid].generation == 1


async def test_only_a_controller_that_runs_takes_over_what_an_earlier_process_left_open(
    shop: Shop, tmp_path: Path
) -> None:
    path = tmp_path / "rematch.db"
    async with await Store.open(path) as store:
        store.add_move(MoveRow("m", None, "u", "default/old", "w", "n1", "n2", "evicted", 1.0))
    kubeconfig = str(shop.cluster.kubeconfig(tmp_path / "kubeconfig"))

    async with open_controller(Options(path, kubeconfig)) as live:
        assert [row.state for row in await live.controller.store.open_moves()] == ["evicted"]
        assert await live.controller.store.revisions() == []
    async with controlled(shop, tmp_path) as live:
        assert [row.state for row in await live.controller.store.moves()] == ["abandoned"]


async def test_what_an_earlier_process_learned_is_in_the_first_snapshot_and_is_stored_again(
    shop: Shop, tmp_path: Path
) -> None:
    async with await Store.open(tmp_path / "rematch.db") as store:
        store.add_load_bins(LoadBinRow(18, 1e6, 4e5, 0.92e6, 1e5, time.time()))
        store.add_startups(StartupRow("default/ReplicaSet/web", 1.0, (4.0, 6.0, 5.0)))
        store.add_move_checks(MoveCheckRow("m", "p", "u", "n2", 1.0, 0.01, 0.02, helped=True))
    async with controlled(shop, tmp_path, "mode: observe") as live:
        snapshot = live.controller.state.freeze(live.controller.executor.active_moves())
        overview = (await live_view(live).cluster()).overview(OverviewQuery())
    assert abs(snapshot.failure_curve.probability(0.92) - 0.4) < 0.03
    assert snapshot.startup_seconds["default/ReplicaSet/web"] == 5.0
    assert overview.calibration is not None
    assert overview.calibration.moves == 1
    async with await Store.open(tmp_path / "rematch.db", read_only=True) as store:
        (row,) = [row for row in await store.load_bins() if row.bin == 18]
        assert abs(row.failures / row.probes - 0.4) < 0.01


async def test_two_controllers_do_not_share_a_store(shop: Shop, tmp_path: Path) -> None:
    async with controlled(shop, tmp_path):
        with pytest.raises(StorageError, match=r"rematch\.db is used by another Rematch process; stop it"):
            async with open_controller(Options(tmp_path / "rematch.db", str(tmp_path / "kubeconfig"))):
                pass


async def test_in_mode_observe_nothing_is_touched(shop: Shop, tmp_path: Path) -> None:
    async with controlled(shop, tmp_path) as live:
        await eventually(measured(live))
        shop.fail("web")
        await eventually(lambda: "RematchWaits" in shop.said())

    assert shop.where("web") == ["n1"]
    assert "Unhappy" in shop.said()
    assert "Moving" not in shop.said()


async def test_a_dry_run_writes_no_events_either(shop: Shop, tmp_path: Path) -> None:
    async with controlled(shop, tmp_path, "mode: act", dry_run=True, mode=Mode.OBSERVE) as live:
        await eventually(measured(live))
        shop.fail("web")
        await eventually(lambda: live.controller.memory.cooldowns.backoffs)

    assert shop.said() == []
    assert shop.where("web") == ["n1"]


def protect(shop: Shop, **spec: object) -> None:
    selector = {"matchLabels": {"app": "web"}}
    budget = {"metadata": {"name": "web-pdb", "namespace": "default"}, "spec": {**spec, "selector": selector}}
    shop.cluster.api.create(PODDISRUPTIONBUDGETS, budget)


async def test_a_budget_that_never_allows_anything_is_respected(shop: Shop, tmp_path: Path) -> None:
    protect(shop, maxUnavailable=0)
    async with controlled(shop, tmp_path, "mode: act") as live:
        await eventually(measured(live))
        shop.fail("web")
        await eventually(lambda: "RematchWaits" in shop.said())

    assert shop.where("web") == ["n1"]


async def test_a_budget_that_allows_nothing_now_is_surged_past(shop: Shop, tmp_path: Path) -> None:
    """The only replica, behind minAvailable 1: the replacement is there before it goes."""
    protect(shop, minAvailable=1)
    async with controlled(shop, tmp_path, "mode: act") as live:
        await eventually(measured(live))
        shop.fail("web")
        await eventually(lambda: shop.where("web") == ["n2"])
        await eventually(lambda: "Moved" in shop.said())
        await eventually(lambda: not live.controller.executor.busy)
    deployment = shop.cluster.api.get(DEPLOYMENTS, "default", "web")
    assert deployment["spec"]["replicas"] == 1


async def test_settings_in_a_config_map_are_followed(shop: Shop, tmp_path: Path) -> None:
    config_map_name = ObjectName("default", "rematch")

    def written(text: str) -> dict[str, object]:
        return {"metadata": {"name": "rematch", "namespace": "default"}, "data": {"settings.yaml": text}}

    shop.cluster.api.create(CONFIGMAPS, written("mode: act"))
    async with controlled(shop, tmp_path, config_map=config_map_name) as live:
        await eventually(lambda: live.settings.get().mode is Mode.ACT)

        shop.cluster.api.update(CONFIGMAPS, written("mode: fly"))
        await eventually(lambda: "SettingsRefused" in shop.said())
        assert live.settings.get().mode is Mode.ACT

        shop.cluster.api.update(CONFIGMAPS, written("mode: observe"))
        await eventually(lambda: live.settings.get().mode is Mode.OBSERVE)


async def test_a_bad_config_map_at_the_start_keeps_the_last_accepted_settings_in_force(
    shop: Shop, tmp_path: Path
) -> None:
    name = ObjectName("rematch", "rematch")
    document = {"metadata": {"name": "rematch", "namespace": "rematch"}}
    good = "mode: act\nhappiness: {threshold: 0.77}\n" + FAST
    shop.cluster.api.create(CONFIGMAPS, {**document, "data": {"settings.yaml": good}})
    async with controlled(shop, tmp_path, config_map=name) as live:
        await eventually(lambda: live.settings.get().mode is Mode.ACT)
    shop.cluster.api.update(CONFIGMAPS, {**document, "data": {"settings.yaml": "mode: fly"}})

    async with controlled(shop, tmp_path, config_map=name) as live:
        await eventually(lambda: "SettingsRefused" in shop.said())
        assert (live.settings.get().mode, live.settings.get().happiness.threshold) == (Mode.ACT, 0.77)
        registry = live.controller.instruments.registry
        assert registry.get_sample_value("rematch_settings_restored") == 1
        problems = (await live_view(live).cluster()).overview(OverviewQuery()).problems
        assert any("the settings of the last run are in force" in problem for problem in problems)


async def test_the_page_shows_what_the_controller_knows(shop: Shop, tmp_path: Path) -> None:
    async with controlled(shop, tmp_path) as live, serve(live, "127.0.0.1", 0) as url:
        await eventually(measured(live))
        shop.fail("web")
        await eventually(lambda: live.controller.memory.cooldowns.backoffs)
        name = shop.pods("web")[0]["metadata"]["name"]
        await live.controller.store.flush()

        async with aiohttp.ClientSession() as session:
            overview = await (await session.get(f"{url}/api/v1/overview")).json()
            decisions = await (await session.get(f"{url}/api/v1/decisions")).json()
            pod = await (await session.get(f"{url}/api/v1/pods/default/{name}")).json()
            missing = (await session.get(f"{url}/api/v1/pods/default/nobody")).status
            metrics = await (await session.get(f"{url}/metrics")).text()
            ready = (await session.get(f"{url}/readyz")).status

    assert [node["name"] for node in overview["nodes"]] == ["n1", "n2"]
    assert overview["totals"]["unhappy"] == 1
    assert overview["mode"] == "observe"
    assert "rematch" in {decision["kind"] for decision in decisions["decisions"]}
    assert pod["happiness"]["happy"] is False
    assert pod["decision"]["reason"] == "observed"
    assert pod["placement"]["whyHere"][0] == "n1 -> n2"
    assert (missing, ready) == (404, 200)
    assert "rematch_pods_unhappy 1.0" in metrics


async def test_the_samples_of_the_charts_have_equal_lengths(shop: Shop, tmp_path: Path) -> None:
    async with controlled(shop, tmp_path) as live:
        view = live_view(live)
        sampling = asyncio.create_task(view.keep_sampling())
        await eventually(lambda: view.samples.version)
        sampling.cancel()
        await asyncio.gather(sampling, return_exceptions=True)
        series = await view.series()

    assert series.times
    assert {len(node.cpu) for node in series.nodes} == {len(series.times)}
    assert series.happiness_min == (1.0,) * len(series.times)


async def test_charts_that_stop_are_reported(shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(_view: LiveView) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(LiveView, "keep_sampling", fail)
    with structlog.testing.capture_logs() as logs:
        async with controlled(shop, tmp_path) as live, serve(live, "127.0.0.1", 0):
            await asyncio.sleep(0)
            await asyncio.sleep(0)
    assert [entry["event"] for entry in logs if entry["log_level"] == "error"] == ["the charts get no more samples"]


async def test_a_port_that_is_taken_is_one_clear_line(shop: Shop, tmp_path: Path) -> None:
    async with controlled(shop, tmp_path) as live, serve(live, "127.0.0.1", 0) as url:
        port = int(url.rpartition(":")[2])
        with pytest.raises(InputError, match=f"cannot listen on 127.0.0.1:{port}"):
            async with serve(live, "127.0.0.1", port):
                pass


async def test_an_overview_before_the_first_list_says_that_nothing_is_known(shop: Shop, tmp_path: Path) -> None:
    kubeconfig = str(shop.cluster.kubeconfig(tmp_path / "kubeconfig"))
    async with open_controller(Options(tmp_path / "rematch.db", kubeconfig)) as live:
        view = live_view(live)
        overview = (await view.cluster()).overview(OverviewQuery())

        assert not overview.synced
        assert not view.ready().ok
        assert "not listed yet: pods" in view.ready().reasons
        assert view.live().ok
    assert overview.mode == make_settings().mode


async def test_with_a_damaged_store_it_starts_binds_evicts_nothing_and_goes_on_when_it_is_mended(
    shop: Shop, tmp_path: Path
) -> None:
    (tmp_path / "rematch.db").write_bytes(b"no database " * 1000)
    with structlog.testing.capture_logs() as logs:
        async with controlled(shop, tmp_path, "mode: act", own_process=True) as live:
            await eventually(measured(live))
            shop.fail("web")
            await eventually(lambda: live.controller.executor.busy)
            shop.cluster.api.create(PODS, _bare_pod("new-1"))
            await eventually(lambda: _node_of(shop, "new-1"))
            assert shop.where("web") == ["n1"]
            assert any("nothing is evicted" in problem for problem in HealthReader(live).problems())
            assert (tmp_path / "rematch.db").read_bytes() == b"no database " * 1000

            (tmp_path / "rematch.db").unlink()
            await eventually(lambda: shop.where("web") == ["n2"], 20)
    said = [line for line in logs if line["event"] == "nothing is evicted: the store takes no records"]
    assert len(said) == 1


def _bare_pod(name: str) -> Json:
    container = {"name": "srv", "image": "x", "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}}}
    labels = {"app": "new"}
    return {
        "metadata": {"name": name, "namespace": "default", "labels": labels},
        "spec": {"schedulerName": "rematch", "containers": [container]},
    }


def _node_of(shop: Shop, name: str) -> str:
    return next(
        str(stored.obj["spec"].get("nodeName", ""))
        for stored in shop.cluster.store.all(PODS)
        if stored.obj["metadata"]["name"] == name
    )


async def record_two_days(path: Path) -> int:
    """Of forty pods, until now; the end of the last step of the history."""
    now = int(time.time())
    start = now // 3600 * 3600 - 48 * 3600
    steps = (now - start) // FIVE_MINUTES.step
    draw = np.random.default_rng(3)
    day = 1 + np.sin(2 * np.pi * np.arange(steps) / 288)
    cpu = {f"shop/web-{number}": day * draw.uniform(0.2, 0.4, steps) for number in range(40)}
    async with await Store.open(path) as store:
        index = SeriesIndex()
        await record(store, index, "pod", start, {Axis.CPU: cpu})
        await record(store, index, "workload", start, {Axis.CPU: {"shop/ReplicaSet/web": day}})
    return start + steps * FIVE_MINUTES.step


def training_niceness() -> list[int]:
    """Of the children of this process that train."""
    children = Path(f"/proc/{os.getpid()}/task").glob("*/children")
    found = [int(child) for file in children for child in file.read_text().split()]
    lines = {child: Path(f"/proc/{child}/cmdline") for child in found}
    training = [child for child, file in lines.items() if file.exists() and b"predictors.train" in file.read_bytes()]
    return [os.getpriority(os.PRIO_PROCESS, child) for child in training]


@pytest.mark.timeout(500)
async def test_training_runs_niced_and_its_models_are_used_again_after_a_restart(shop: Shop, tmp_path: Path) -> None:
    """Of the CPU: the training of memory follows with the next step, five minutes later. A busy machine leaves little
    time to niced work."""
    trains = "forecasting: {training: {minimum: 6h, seconds: 60s}}"
    last_step = await record_two_days(tmp_path / "rematch.db")
    models = tmp_path / "rematch.db.models-cpu"
    async with controlled(shop, tmp_path, trains) as live:
        await eventually(lambda: training_niceness() == [19])
        await eventually(models.exists, 400.0)
        await eventually(lambda: live.controller.state.forecasts.pods.rows)
        assert live.controller.state.forecasts.trained_at == {}, "the first forecasts were made without a model"
    trained_at = load(models).trained_at
    assert trained_at is not None
    assert trained_at >= last_step
    written = models.stat().st_mtime_ns
    async with controlled(shop, tmp_path, trains) as again:
        await eventually(lambda: Axis.CPU in again.controller.state.forecasts.trained_at)
        forecasts = again.controller.state.forecasts
        usage = await live_view(again).usage(UsageQuery(name="shop/web-0"))
    assert usage is not None
    assert usage.axes[0].forecast is not None, "charts go on with it"
    assert forecasts.trained_at[Axis.CPU] == trained_at
    assert forecasts.pods.of("shop/web-0", Axis.CPU, 3600.0) is not None
    assert models.stat().st_mtime_ns == written, "a model of today is not trained again"
