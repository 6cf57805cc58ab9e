"""`rematch lab experiment stable`: simulated time, real nodes, the report."""

from __future__ import annotations

import asyncio
import contextlib
import os
import platform
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import click

from loadtests.experiments.ending import Ending
from loadtests.experiments.stable.apps import draw_apps
from loadtests.experiments.stable.design import (
    OUR_LIVE,
    OURS,
    PACES,
    PAPER,
    PAPER_RAW,
    Arm,
    Design,
    long_design,
    short_design,
    simulated_design,
)
from loadtests.experiments.stable.driver import Driver
from loadtests.experiments.stable.records import About, DataFolder
from loadtests.experiments.stable.report.writing import verdict_lines, write_report
from loadtests.experiments.stable.runner import Plan, Runner
from loadtests.experiments.stable.settings import settings_for
from loadtests.experiments.stable.simulated import SimulatedDriver
from loadtests.progress_bar import ProgressBar
from loadtests.tools.state_folder import claimed
from matching.registry import known_planners
from reactor.cli.stopping import until_stopped
from reactor.errors import InputError
from reactor.record.logs import configure_logs
from reactor.settings.model import Settings
from storage.limits import Limits
from storage.store import Store

SET_UP_SECONDS = 10.0
"""Of one run on real nodes: fifteen pods away, fifteen new ones Ready."""
_SIMULATED_SPEED = 0.012
"""Seconds that a simulated second takes; only the first estimate of the time left is made with it."""
_NEVER = 24 * 3600.0


def own_versions() -> Mapping[str, str]:
    return {
        "rematch": version("rematch"),
        "python": platform.python_version(),
        "machine": f"{os.cpu_count()} cores, {platform.system()} {platform.release()}",
    }


@dataclass(frozen=True, slots=True)
class ExperimentOptions:
    """The command line."""

    real: bool
    simulated: bool
    steps: str | None
    """A name of PACES; None: a minute in simulated time, the short ones on real nodes."""
    raw_units: bool
    tool: str
    seeds: int
    resume: bool
    against: str
    predictive: bool
    state: Path
    copy_to: Path | None

    def form(self, world: str) -> str:
        return self.steps or ("minute" if world == "simulated" else "short")

    def design(self, world: str) -> Design:
        planners = tuple(name for name in (OURS, PAPER) if name in known_planners())
        planners += (PAPER_RAW,) if self.raw_units and PAPER in planners else ()
        form = self.form(world)
        if world == "simulated":
            design = simulated_design(PACES[form], planners, self.seeds)
            return replace(design, predictive=self.predictive)
        design = (
            short_design(planners, self.seeds) if form == "short" else long_design(PACES[form], planners, self.seeds)
        )
        return replace(design, against=self.against, predictive=self.predictive)


def main(options: ExperimentOptions) -> None:
    with claimed(options.state), (options.state / "experiment.log").open("a") as log:
        configure_logs(level="info" if options.real else "warning", json=True, stream=log)
        data = DataFolder(options.state)
        stopped = asyncio.run(until_stopped(_run(options, data)))
        abouts = [about.name for about in options.state.glob("*.json") if about.stem in ("simulated", "real")]
        ending = Ending(options.state, options.copy_to, ("steps.csv", "summary.json", *abouts))
        ending.report(lambda partial: write_report(data, partial=partial), stopped=stopped)
        click.echo("\n".join(verdict_lines(data)))


async def _run(options: ExperimentOptions, data: DataFolder) -> None:
    if options.simulated:
        await _world(options, data, "simulated")
    if options.real:
        await _world(options, data, "real")


async def _world(options: ExperimentOptions, data: DataFolder, world: str) -> None:
    design = options.design(world)
    async with _driver(options, design, world, data.folder) as (driver, prometheus):
        known = data.about(world)
        if known is None or not options.resume:
            data.forget(world)
            known = await _about(options, design, driver, data, prometheus)
            data.begin(known)
        elif (known.form, known.tool) != (options.form(world), _tool(options, world)):
            raise InputError(f"--resume: the data in {data.folder} are of another form or tool")
        data.repair(world)

        def settings(arm: Arm) -> Settings:
            return settings_for(arm, design.pace, prometheus)

        expected = design.seconds() + (SET_UP_SECONDS * len(design.runs()) if world == "real" else 0.0)
        seconds = expected if world == "real" else expected * _SIMULATED_SPEED
        bar = ProgressBar(time.monotonic, name=world, expected=seconds)
        await Runner(Plan(design, known.tool, known.capacity, settings), driver, data, bar.show).run()


async def _about(
    options: ExperimentOptions, design: Design, driver: Driver, data: DataFolder, prometheus: str
) -> About:
    """The capacity is measured here: the rates depend on it."""
    seed = design.goal_seeds[0]
    default = await driver.default_placement(seed)
    data.keep_default(driver.world, {seed: default})
    capacity = await driver.capacity(draw_apps(design, seed, default))
    settings: dict[str, Any] = settings_for(OUR_LIVE, design.pace, prometheus).model_dump(mode="json", by_alias=True)
    notes = () if PAPER in design.planners else (f"the planner {PAPER} is not installed here: its arms are left out",)
    return About(
        world=driver.world,
        tool=_tool(options, driver.world),
        started=datetime.now(UTC).isoformat(timespec="seconds"),
        form=options.form(driver.world),
        capacity=capacity,
        cores=design.cores,
        nodes={node.name: node.cores for node in design.nodes},
        versions={**own_versions(), **driver.versions},
        settings=settings,
        notes=notes,
        memory={node.name: float(node.memory_bytes) for node in design.nodes},
    )


def _tool(options: ExperimentOptions, world: str) -> str:
    return options.tool if world == "real" else "model"


@asynccontextmanager
async def _driver(
    options: ExperimentOptions, design: Design, world: str, folder: Path
) -> AsyncIterator[tuple[Driver, str]]:
    """The driver, and the URL of the Prometheus that the controller shall ask."""
    if world == "simulated":
        database = folder / "simulated.db"
        with contextlib.suppress(FileNotFoundError):
            database.unlink()
        async with await Store.open(database, Limits(flush_seconds=_NEVER)) as store:
            yield SimulatedDriver(design, store), ""
        return
    from loadtests.experiments.stable.real.driver import RealDriver

    async with RealDriver.open(design, options.tool) as driver:
        yield driver, driver.lab.prometheus.url
