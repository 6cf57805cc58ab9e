"""Runs what is missing, in processes of its own; each run is on disk as soon as it is known."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass

from loadtests.experiments.kse.design import Scenario
from loadtests.experiments.kse.results import Key, Run
from loadtests.experiments.kse.run import run
from loadtests.progress_bar import Progress
from loadtests.record_file import RecordFile
from loadtests.simulation.process import prepare_process, run_simulation


@dataclass(frozen=True, slots=True)
class Task:
    scenario: Scenario
    arm: str
    seed: int

    @property
    def key(self) -> Key:
        return (self.scenario.name, self.arm, self.seed)


def tasks(scenarios: Sequence[Scenario], arms: Sequence[str], repeats: int) -> list[Task]:
    """All scenarios of a seed before the next seed, so that an interrupted experiment has something of each."""
    return [Task(each, arm, seed) for seed in range(1, repeats + 1) for each in scenarios for arm in arms]


def _run(task: Task) -> Run:
    return run_simulation(lambda store: run(task.scenario, task.arm, task.seed, store))


def run_missing(wanted: Sequence[Task], file: RecordFile[Run], jobs: int, show: Callable[[Progress], None]) -> None:
    known = {run.key for run in file.read()}
    missing = [task for task in wanted if task.key not in known]
    done = len(wanted) - len(missing)
    show(Progress(done, len(wanted)))
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=context, initializer=prepare_process) as pool:
        waiting, running = iter(missing), dict[Future[Run], Task]()
        try:
            while True:
                for task in waiting:
                    running[pool.submit(_run, task)] = task
                    if len(running) >= 2 * jobs:
                        break
                if not running:
                    return
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    task = running.pop(future)
                    file.add(future.result())
                    done += 1
                    show(Progress(done, len(wanted), f"{task.scenario.name}, {task.arm}, repeat {task.seed}"))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
