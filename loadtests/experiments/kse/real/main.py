"""What is missing of the part on real nodes is run; each run is on disk as soon as it is over."""

from __future__ import annotations

import time
from collections.abc import Sequence

from loadtests.experiments.kse.arms import ARMS
from loadtests.experiments.kse.design import Scenario
from loadtests.experiments.kse.real.bench import RealBench
from loadtests.experiments.kse.real.design import LOAD_SECONDS
from loadtests.experiments.kse.real.records import RealRun
from loadtests.experiments.kse.runner import tasks
from loadtests.progress_bar import Progress, ProgressBar
from loadtests.record_file import RecordFile

_SET_UP = 20.0
"""Seconds of a run beside the load: twenty pods away, twenty new ones Ready and routed."""


async def run_real(scenarios: Sequence[Scenario], repeats: int, file: RecordFile[RealRun]) -> None:
    known = {run.key for run in file.read()}
    wanted = tasks(scenarios, tuple(ARMS), repeats)
    missing = [task for task in wanted if task.key not in known]
    if not missing:
        return
    bar = ProgressBar(time.monotonic, name="real nodes", expected=(LOAD_SECONDS + _SET_UP) * len(wanted))
    done = len(wanted) - len(missing)
    bar.show(Progress(done, len(wanted), "starting the nodes"))
    async with RealBench.open(scenarios[0].apps()) as bench:
        for number, task in enumerate(missing, done + 1):
            run = await bench.run(task.scenario, task.arm, task.seed)
            file.add(run)
            bar.show(Progress(number, len(wanted), _line(run)))


def _line(run: RealRun) -> str:
    figures = f"imbalance {run.imbalance:.0f}, {run.moves} moves, {run.availability:.2f} %"
    return f"{run.scenario}, {run.arm}, repeat {run.seed}: {figures}"
