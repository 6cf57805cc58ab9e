"""`rematch lab experiment latency`: LATENCY's three tests with the whole chain, one HTML report."""

from __future__ import annotations

import asyncio
import sys
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from loadtests.controlplane import Component
from loadtests.experiments.latency.design import Case, cases
from loadtests.experiments.latency.lab import edge_lab
from loadtests.experiments.latency.network import enter, inside
from loadtests.experiments.latency.records import record_file
from loadtests.experiments.latency.report import write_report
from loadtests.experiments.latency.run import play
from loadtests.mosquitto import find_mosquitto
from loadtests.progress_bar import Progress, ProgressBar
from loadtests.report_page import copy_report
from loadtests.tools import ensure
from loadtests.tools.state_folder import claimed
from reactor.cli.stopping import until_stopped
from reactor.record.logs import configure_logs

_RUNS = "runs.jsonl"
DATA = ("moves.csv", "measurements.csv", "summary.json")


@dataclass(frozen=True, slots=True)
class LatencyOptions:
    seeds: int
    jobs: int
    pace: float
    only_first: bool
    resume: bool
    state: Path
    copy_to: Path | None


def main(options: LatencyOptions) -> None:
    if not inside():
        find_mosquitto()
        asyncio.run(ensure([*Component, "openssl", "setpriv", "ip"]))
        enter()
    with claimed(options.state), (options.state / "experiment.log").open("a") as log:
        configure_logs(level="warning", json=True, stream=log)
        path = options.state / _RUNS
        if not options.resume:
            path.unlink(missing_ok=True)
        stopped = asyncio.run(until_stopped(_run_missing(options, path)))
        if stopped:
            click.echo("\nstopped; what was measured so far is kept, --resume goes on from there", err=True)
        page = write_report(options.state, record_file(path).read(), partial=stopped)
        click.echo(f"{'partial report, of what was measured so far' if stopped else 'report'}: {page}")
        if options.copy_to is not None and not stopped:
            copy_report(options.state, options.copy_to, DATA)
            click.echo(f"copied to {options.copy_to}")


async def _run_missing(options: LatencyOptions, path: Path) -> None:
    known = {record.case.key for record in record_file(path).read() if record.pace == options.pace}
    wanted = cases(options.seeds, only_first=options.only_first)
    missing = deque(case for case in wanted if case.key not in known)
    bar = ProgressBar(time.monotonic, sys.stderr)
    bar.show(Progress(len(wanted) - len(missing), len(wanted), f"starting {min(options.jobs, len(missing))} labs"))
    async with asyncio.TaskGroup() as working:
        for number in range(1, min(options.jobs, len(missing)) + 1):
            working.create_task(_work(number, missing, options, path, bar, wanted))


async def _work(
    number: int, missing: deque[Case], options: LatencyOptions, path: Path, bar: ProgressBar, wanted: Sequence[Case]
) -> None:
    """One lab after the other case, until none is left."""
    folder = options.state / f"lab-{number}"
    async with edge_lab(number, folder) as lab:
        while missing:
            case = missing.popleft()
            place = options.state / "runs" / "-".join(str(part).replace(" ", "-") for part in case.key)
            record_file(path).add(await play(lab, case, options.pace, place))
            bar.show(Progress(len(record_file(path).read()), len(wanted), str(case)))
