"""Forecasts in the controller: made every step, kept across restarts, trained in a process of their own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import numpy as np
import pytest
from structlog.testing import capture_logs

from reactor.background.forecast_training import train
from reactor.background.forecasting import ForecastUpdates
from reactor.forecasts.models import load, model_file
from reactor.forecasts.samples import Samples
from reactor.history.levels import Axis
from reactor.history.series import SeriesIndex
from reactor.settings.model import Settings, Training
from storage.limits import Limits
from storage.store import Store
from tests.reactor.forecasts.recorded import record
from tests.support.clock import VirtualClock
from tests.support.cluster import make_node, make_pod
from tests.support.rig import Rig

START = 1_700_006_400
DAY_STEPS = 300


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    async with await Store.open(tmp_path / "rematch.db", Limits(flush_seconds=30.0)) as opened:
        yield opened


async def fill(store: Store) -> None:
    draw = np.random.default_rng(3)
    day = 1 + np.sin(2 * np.pi * np.arange(DAY_STEPS) / 288)
    cpu = {f"shop/web-{number}": day * draw.uniform(0.2, 0.4, DAY_STEPS) for number in range(40)}
    memory = {name: 1e8 * values for name, values in cpu.items()}
    index = SeriesIndex()
    await record(store, index, "pod", START, {Axis.CPU: cpu, Axis.MEMORY: memory})
    await record(store, index, "workload", START, {Axis.CPU: {"shop/ReplicaSet/web": day}})


async def test_forecasts_are_made_saved_and_trained(store: Store, tmp_path: Path) -> None:
    await fill(store)
    rig = Rig(clock=VirtualClock(START + DAY_STEPS * 300 + 30.0))
    rig.sync(make_pod("web-1"), make_node("n1"))
    trained_axes: list[Axis] = []

    async def no_training(_pods: Samples, axis: Axis, *_: object) -> bool:
        trained_axes.append(axis)
        return False

    updates = ForecastUpdates(
        rig.state, store, lambda: rig.settings, rig.clock, no_training, models=tmp_path / "rematch.db"
    )
    await updates.update()
    forecasts = rig.state.forecasts
    assert forecasts.at == START + DAY_STEPS * 300
    assert len(forecasts.pods.rows) == 40
    assert forecasts.nodes.of("n1", Axis.CPU, 3600.0) is not None
    await updates.until_trained()
    updates._save()
    await store.flush()
    assert "forecasts/boosted-peak/pod/cpu" in [row.name for row in await store.documents()]
    rig.clock.set(rig.clock.now() + 300.0)
    await updates.update()
    await updates.until_trained()
    rig.clock.set(rig.clock.now() + 300.0)
    await updates.update()
    await updates.until_trained()
    assert trained_axes == [Axis.CPU, Axis.MEMORY], "one after the other, at most daily"


async def test_training_is_a_process_of_its_own_and_writes_a_file(tmp_path: Path) -> None:
    """Too little to learn from is said, and makes a file without models."""
    samples = Samples((Axis.CPU,), 300)
    samples.put(Axis.CPU, samples.rows_of(["shop/web-1"]), slice(0, 300), np.full(300, 0.5))
    with capture_logs() as logs:
        assert await train(samples, Axis.CPU, 1e9, tmp_path / "models", Training())
    assert load(tmp_path / "models").trained == {}
    assert "not trained" in logs[0]["left_out"]


async def test_a_model_file_that_cannot_be_used_is_set_aside(tmp_path: Path) -> None:
    path = model_file(tmp_path / "rematch.db", Axis.CPU)
    path.write_bytes(b"no models")
    with capture_logs() as logs:
        assert load(path).trained == {}
    assert not path.exists()
    aside = path.with_name(path.name + ".damaged-1")
    assert aside.read_bytes() == b"no models"
    assert logs[0]["set_aside"] == str(aside)


async def test_forecasts_that_are_switched_off_are_gone(store: Store, tmp_path: Path) -> None:
    await fill(store)
    rig = Rig(clock=VirtualClock(START + DAY_STEPS * 300 + 30.0))
    rig.settings = Settings.model_validate({"forecasting": {"training": {"every": 0}}})
    updates = ForecastUpdates(rig.state, store, lambda: rig.settings, rig.clock, models=tmp_path / "rematch.db")
    await updates.update()
    assert rig.state.forecasts.pods.rows
    rig.settings = Settings.model_validate({"forecasting": {"enabled": False}})
    await updates.update()
    assert not rig.state.forecasts.pods.rows
