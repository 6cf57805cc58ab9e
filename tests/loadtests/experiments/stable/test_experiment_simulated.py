from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from loadtests.experiments.stable.apps import draw_apps
from loadtests.experiments.stable.design import OUR_LIVE, OURS, SHORT, STEPS, Arm, Design, Pace, Run, simulated_design
from loadtests.experiments.stable.driver import SessionSpec
from loadtests.experiments.stable.measurement import Setting, record_of
from loadtests.experiments.stable.records import DataFolder, StepRecord
from loadtests.experiments.stable.runner import Plan, Runner
from loadtests.experiments.stable.settings import settings_for
from loadtests.experiments.stable.simulated import SimulatedDriver
from loadtests.progress_bar import Progress
from loadtests.simulation.clock import VirtualClock
from loadtests.workloads.placement import App
from reactor.settings.model import Settings
from storage.limits import Limits
from storage.store import Store


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    async with await Store.open(tmp_path / "rows.db", Limits(flush_seconds=3600.0)) as opened:
        yield opened


def make_driver(store: Store, pace: Pace = SHORT) -> SimulatedDriver:
    return SimulatedDriver(simulated_design(pace, (OURS,), 3), store)


async def run_at(driver: SimulatedDriver, settings: Settings | None, share: float, seconds: float) -> StepRecord:
    default = await driver.default_placement(1)
    apps = draw_apps(driver.design, 1, default)
    rate = share * await driver.capacity(apps)
    async with driver.session(SessionSpec(1, apps, default, SHORT, settings)) as session:
        seen = await (await session.step(rate, seconds))()
        setting = Setting("simulated", "model", Run(OUR_LIVE, 1), STEPS[0], rate, seconds)
        return record_of(setting, seen, await session.placement())


def test_what_is_due_first_happens_first() -> None:
    clock, seen = VirtualClock(), []
    for when in (3.0, 1.0, 2.0):
        clock.at(when, lambda when=when: seen.append((when, clock.time)))  # type: ignore[misc]
    while clock.step(2.5):
        pass
    assert seen == [(1.0, 1.0), (2.0, 2.0)]
    assert clock.time == 2.5


async def test_below_half_of_the_capacity_nothing_fails(store: Store) -> None:
    record = await run_at(make_driver(store), None, 0.4, 5.0)
    assert record.availability == 1.0
    assert record.cores_used == pytest.approx(0.4 * 1.25, rel=0.1)
    assert record.requests == int(record.rate * 15 * 5)


async def test_an_overrun_node_fails_and_is_left_alone_without_a_controller(store: Store) -> None:
    driver = make_driver(store)
    record = await run_at(driver, None, 0.85, 25.0)
    assert record.availability < 0.95
    assert record.restarts > 0
    assert record.placement == await driver.default_placement(1)


async def test_the_controller_moves_a_pod_off_the_overrun_node(store: Store) -> None:
    driver = make_driver(store)
    alone = await run_at(driver, None, 0.85, 40.0)
    live = await run_at(driver, settings_for(OUR_LIVE, SHORT), 0.85, 40.0)
    default = await driver.default_placement(1)
    moved = [app for app, node in live.placement.items() if node != default[app]]
    assert live.moves == len(moved) >= 1
    assert all(default[app] == "node2" for app in moved)
    assert live.availability > alone.availability
    assert (live.without_node, live.dumped) == (0, 0)


async def test_the_same_seed_gives_the_same_figures(store: Store) -> None:
    settings = settings_for(OUR_LIVE, SHORT)
    first = await run_at(make_driver(store), settings, 0.8, 15.0)
    assert await run_at(make_driver(store), settings, 0.8, 15.0) == first


async def test_the_runner_resumes_where_it_was_cut_off(store: Store, tmp_path: Path) -> None:
    pace = Pace(seconds=1.0, probe_period=1)
    design = Design(pace, (1,), (), (OURS,), (OURS,), (0.8,))
    driver, data, shown = SimulatedDriver(design, store), DataFolder(tmp_path), list[Progress]()

    def settings(arm: Arm) -> Settings:
        return settings_for(arm, pace)

    plan = Plan(design, "model", await driver.capacity(tuple(App(f"app-{n:02}", 17.0) for n in range(15))), settings)
    await Runner(plan, driver, data, shown.append).run()
    assert [progress.done for progress in shown] == [*range(12), *range(11, 23), *range(22, 34)]
    whole = data.records("simulated")
    assert len(whole) == 33
    lines = (tmp_path / "simulated.jsonl").read_bytes().splitlines(keepends=True)
    (tmp_path / "simulated.jsonl").write_bytes(b"".join(lines[:15]))
    shown.clear()
    await Runner(plan, driver, data, shown.append).run()
    assert shown[0].last == f"{OUR_LIVE.name}, seed 1"
    assert len(data.records("simulated")) == 15 + 11 + 11
