"""`rematch lab experiment kse`: runs what is missing, then writes the report."""

from __future__ import annotations

import asyncio
import os
import platform
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from loadtests.experiments.ending import Ending
from loadtests.experiments.kse.arms import ARMS
from loadtests.experiments.kse.design import FUTURE_WORK, Scenario, scenarios
from loadtests.experiments.kse.real.design import SUBSET
from loadtests.experiments.kse.real.main import run_real
from loadtests.experiments.kse.real.records import RealRun
from loadtests.experiments.kse.report import write_report
from loadtests.experiments.kse.results import About, Run, model_digest
from loadtests.experiments.kse.runner import run_missing, tasks
from loadtests.progress_bar import ProgressBar
from loadtests.record_file import RecordFile
from loadtests.tools.state_folder import claimed
from reactor.cli.stopping import until_stopped
from reactor.errors import InputError
from reactor.record.logs import configure_logs

_DATA = ("runs.csv", "real-runs.csv", "scenarios.csv", "summary.json", "about.json")


@dataclass(frozen=True, slots=True)
class KseOptions:
    """The command line."""

    repeats: int
    jobs: int
    resume: bool
    state: Path
    copy_to: Path | None
    only: tuple[str, ...] = ()
    """Scenarios whose names contain all of these words."""
    real: bool = False
    """Also the chosen scenarios of the subset on real nodes."""
    real_repeats: int = 2


def main(options: KseOptions) -> None:
    chosen = _chosen([*scenarios(), *FUTURE_WORK], options.only)
    on_nodes = _chosen(SUBSET, options.only) if options.real else []
    with claimed(options.state), (options.state / "experiment.log").open("a") as log:
        configure_logs(level="warning", json=True, stream=log)
        file = RecordFile(options.state / "runs.jsonl", Run)
        real = RecordFile(options.state / "real-runs.jsonl", RealRun)
        about = _begin(options, file, real)
        stopped = False
        try:
            wanted = tasks(chosen, tuple(ARMS), options.repeats)
            run_missing(wanted, file, options.jobs, ProgressBar(time.monotonic).show)
            if on_nodes:
                stopped = asyncio.run(until_stopped(run_real(on_nodes, options.real_repeats, real)))
        except KeyboardInterrupt:
            stopped = True

        def write(partial: bool) -> Path:
            return write_report(options.state, file.read(), about, real.read(), partial=partial)

        Ending(options.state, options.copy_to, _DATA).report(write, stopped=stopped)


def _chosen(every: Sequence[Scenario], words: Sequence[str]) -> list[Scenario]:
    chosen = [each for each in every if all(word in each.name.split() for word in words)]
    if not chosen:
        raise InputError(f"--only: no scenario's name has {' and '.join(words)}; one is: {every[0].name}")
    return chosen


def _begin(options: KseOptions, file: RecordFile[Run], real: RecordFile[RealRun]) -> About:
    path = options.state / "about.json"
    digest = model_digest()
    known = About.read(path)
    if options.resume and known is not None:
        if known.model != digest:
            raise InputError(f"--resume: the runs in {options.state} are of another version of the model")
        return known
    file.forget()
    real.forget()
    machine = f"{os.cpu_count()} cores, {platform.system()} {platform.release()}"
    about = About(digest, version("rematch"), platform.python_version(), machine)
    about.write(path)
    return about
