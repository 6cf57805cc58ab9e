"""`rematch lab experiment bnip`: nine pods by the real kube-scheduler, with and without the extender."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

from loadtests.experiments.bnip.design import Arm, groups, runs, use_of
from loadtests.experiments.bnip.lab import Deployed, open_lab
from loadtests.experiments.bnip.live.main import LiveFiles, run_live
from loadtests.experiments.bnip.live.report import Live
from loadtests.experiments.bnip.report import DATA, RunRecord, write_report
from loadtests.experiments.ending import Ending
from loadtests.progress_bar import Progress, ProgressBar
from loadtests.record_file import RecordFile
from loadtests.tools.state_folder import claimed
from reactor.cli.stopping import until_stopped
from reactor.record.logs import configure_logs

_SECONDS = 20.0
"""Of one run on a machine that does nothing else."""


@dataclass(frozen=True, slots=True)
class BnipOptions:
    repeats: int
    live: bool
    """Also on real nodes."""
    resume: bool
    state: Path
    copy_to: Path | None


def main(options: BnipOptions) -> None:
    with claimed(options.state), (options.state / "experiment.log").open("a") as log:
        configure_logs(level="warning", json=True, stream=log)
        file = RecordFile(options.state / "runs.jsonl", RunRecord)
        live = LiveFiles.below(options.state)
        if not options.resume:
            file.forget()
            live.forget()
        stopped = asyncio.run(until_stopped(_run(options, file, live)))
        ending = Ending(options.state, options.copy_to, DATA)
        ending.report(lambda partial: _report(options, file, live, partial=partial), stopped=stopped)


def _report(options: BnipOptions, file: RecordFile[RunRecord], live: LiveFiles, *, partial: bool) -> Path:
    return write_report(options.state, file.read(), Live(live.updates.read(), live.users.read()), partial=partial)


async def _run(options: BnipOptions, file: RecordFile[RunRecord], live: LiveFiles) -> None:
    await _place(options, file)
    if options.live:
        await run_live(live, options.repeats, options.state)


async def _place(options: BnipOptions, file: RecordFile[RunRecord]) -> None:
    known = {(record.arm, record.repeat) for record in file.read()}
    wanted = runs(options.repeats)
    missing = [(arm, repeat) for arm, repeat in wanted if (arm.name, repeat) not in known]
    if not missing:
        return
    bar = ProgressBar(time.monotonic, name="placements", expected=_SECONDS * len(wanted))
    steps = count(len(wanted) - len(missing))
    bar.show(Progress(next(steps), len(wanted), "starting the control plane"))
    async with open_lab(options.state / "lab") as lab:
        for arm, repeat in missing:
            async with lab.deployed(arm) as deployed:
                file.add(_record(arm, repeat, deployed))
            variance = use_of(deployed.placement).variance
            last = f"{arm.name}, run {repeat}: {groups(deployed.placement)}, variance {variance:.1f} %²"
            bar.show(Progress(next(steps), len(wanted), last))


def _record(arm: Arm, repeat: int, deployed: Deployed) -> RunRecord:
    at, figures = datetime.now(UTC).isoformat(timespec="seconds"), deployed.scheduler
    p50, p99 = (None, None) if figures is None else (figures.p50_ms, figures.p99_ms)
    return RunRecord(arm.name, arm.weight, repeat, deployed.placement, at, p50, p99)
