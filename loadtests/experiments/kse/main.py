"""`rematch lab experiment kse`: runs what is missing, then writes the report."""

from __future__ import annotations

import os
import platform
import time
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from loadtests.experiments.ending import Ending
from loadtests.experiments.kse.arms import ARMS
from loadtests.experiments.kse.design import FUTURE_WORK, scenarios
from loadtests.experiments.kse.report import write_report
from loadtests.experiments.kse.results import About, Run, model_digest
from loadtests.experiments.kse.runner import run_missing, tasks
from loadtests.progress_bar import ProgressBar
from loadtests.record_file import RecordFile
from loadtests.tools.state_folder import claimed
from reactor.errors import InputError

_DATA = ("runs.csv", "scenarios.csv", "summary.json", "about.json")


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


def main(options: KseOptions) -> None:
    every = [*scenarios(), *FUTURE_WORK]
    chosen = [each for each in every if all(word in each.name.split() for word in options.only)]
    if not chosen:
        raise InputError(f"--only: no scenario's name has {' and '.join(options.only)}; one is: {every[0].name}")
    with claimed(options.state):
        file = RecordFile(options.state / "runs.jsonl", Run)
        about = _begin(options, file)
        stopped = False
        try:
            wanted = tasks(chosen, tuple(ARMS), options.repeats)
            run_missing(wanted, file, options.jobs, ProgressBar(time.monotonic).show)
        except KeyboardInterrupt:
            stopped = True
        ending = Ending(options.state, options.copy_to, _DATA)
        ending.report(lambda partial: write_report(options.state, file.read(), about, partial=partial), stopped=stopped)


def _begin(options: KseOptions, file: RecordFile[Run]) -> About:
    path = options.state / "about.json"
    digest = model_digest()
    known = About.read(path)
    if options.resume and known is not None:
        if known.model != digest:
            raise InputError(f"--resume: the runs in {options.state} are of another version of the model")
        return known
    file.forget()
    machine = f"{os.cpu_count()} cores, {platform.system()} {platform.release()}"
    about = About(digest, version("rematch"), platform.python_version(), machine)
    about.write(path)
    return about
