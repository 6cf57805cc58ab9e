"""Runs a design with a driver; a step is on disk as soon as the next is over."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial

from loadtests.experiments.stable.apps import draw_apps
from loadtests.experiments.stable.design import FROZEN_AT, STEPS, Arm, Design, Phase, Run
from loadtests.experiments.stable.driver import Collect, Driver, Session, SessionSpec
from loadtests.experiments.stable.measurement import Setting, record_of
from loadtests.experiments.stable.records import DataFolder, StepRecord, by_run
from loadtests.progress_bar import Progress
from loadtests.workloads.placement import Placement
from reactor.settings.model import Settings


@dataclass(frozen=True, slots=True)
class Plan:
    design: Design
    tool: str
    capacity: float
    """Requests per second and app that fill all nodes."""
    settings: Callable[[Arm], Settings]


class Runner:
    def __init__(self, plan: Plan, driver: Driver, data: DataFolder, show: Callable[[Progress], None]) -> None:
        self._plan, self._driver, self._data, self._show = plan, driver, data, show
        self._done = by_run(data.records(driver.world))
        self._default = data.default_placements(driver.world)

    async def run(self) -> None:
        """Runs that are whole already are not run again; a run that was cut short starts anew, under its own name."""
        runs = self._plan.design.runs()
        for number, run in enumerate(runs):
            if len(self._done.get(run, ())) >= len(STEPS):
                continue
            self._show(Progress(number * len(STEPS), len(runs) * len(STEPS), _name(run)))
            await self._run(run, number, len(runs))

    async def _run(self, run: Run, number: int, of: int) -> None:
        plan = self._plan
        apps = draw_apps(plan.design, run.seed, await self._default_placement(run.seed))
        ours = run.arm.phase is Phase.LIVE and not run.arm.revision
        settings = plan.settings(run.arm) if ours else None
        start = self._start(run)
        spec = SessionSpec(run.seed, apps, start, plan.design.pace, settings, run.arm)
        records: list[StepRecord] = []

        def keep(record: StepRecord) -> None:
            self._data.add(record)
            records.append(record)
            done, last = number * len(STEPS) + len(records), f"{_name(run)} at {record.paper_rate}"
            self._show(Progress(done, of * len(STEPS), last))

        async with self._driver.session(spec) as session:
            await self._walk(session, run, keep)
        self._done[run] = records

    async def _walk(self, session: Session, run: Run, keep: Callable[[StepRecord], None]) -> None:
        """The answers of a step are collected when the next one is over: a move of that step may have begun in it."""
        plan = self._plan
        waiting: Callable[[], Awaitable[StepRecord]] | None = None
        for step in STEPS:
            rate, seconds = step.share * plan.capacity, plan.design.pace.of(step)
            collect = await session.step(rate, seconds)
            placement = await session.placement()
            if waiting is not None:
                keep(await waiting())
            setting = Setting(self._driver.world, plan.tool, run, step, rate, seconds)
            waiting = partial(_record, setting, collect, placement)
        assert waiting is not None
        keep(await waiting())

    async def _default_placement(self, seed: int) -> Placement:
        if seed not in self._default:
            self._default[seed] = await self._driver.default_placement(seed)
            self._data.keep_default(self._driver.world, self._default)
        return self._default[seed]

    def _start(self, run: Run) -> Placement:
        """Frozen runs start at the last settled placement of their live run: one in mid-rematch is nobody's choice. A
        live run that was never settled up to then had not left the default placement for another one."""
        if run.arm.phase is not Phase.FROZEN:
            return self._default[run.seed]
        live = self._done[Run(Arm(Phase.LIVE, run.arm.planner, run.arm.threshold), run.seed)]
        return {**self._default[run.seed], **_at(live, FROZEN_AT).settled}


async def _record(setting: Setting, collect: Collect, placement: Placement) -> StepRecord:
    return record_of(setting, await collect(), placement)


def _name(run: Run) -> str:
    return f"{run.arm.name}, seed {run.seed}"


def _at(records: list[StepRecord], paper_rate: int) -> StepRecord:
    return next(record for record in records if record.paper_rate == paper_rate)
