"""`rematch lab experiment bnip`: nine pods by the real kube-scheduler, with and without the extender."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import click
import msgspec

from loadtests.experiments.bnip.design import Arm, Placement, groups, runs, use_of
from loadtests.experiments.bnip.lab import open_lab
from loadtests.experiments.bnip.report import RunRecord, write_report
from loadtests.report_page import copy_report
from loadtests.tools.state_folder import claimed
from reactor.cli.stopping import until_stopped
from reactor.record.logs import configure_logs

_RUNS = "runs.jsonl"
_EXPECTED = 20.0
"""Seconds of one run on a machine that does nothing else."""


@dataclass(frozen=True, slots=True)
class BnipOptions:
    repeats: int
    resume: bool
    state: Path
    copy_to: Path | None


def main(options: BnipOptions) -> None:
    with claimed(options.state), (options.state / "experiment.log").open("a") as log:
        configure_logs(level="warning", json=True, stream=log)
        path = options.state / _RUNS
        if not options.resume:
            path.unlink(missing_ok=True)
        stopped = asyncio.run(until_stopped(_run(options, path)))
        if stopped:
            click.echo("\nstopped; what was measured so far is kept, --resume goes on from there", err=True)
        page = write_report(options.state, _read(path), partial=stopped)
        click.echo(f"{'partial report, of what was measured so far' if stopped else 'report'}: {page}")
        if options.copy_to is not None and not stopped:
            copy_report(options.state, options.copy_to, ("steps.csv", "summary.json"))
            click.echo(f"copied to {options.copy_to}")


async def _run(options: BnipOptions, path: Path) -> None:
    known = {(record.arm, record.repeat) for record in _read(path)}
    missing = [(arm, repeat) for arm, repeat in runs(options.repeats) if (arm.name, repeat) not in known]
    if not missing:
        return
    click.echo(f"{len(missing)} runs; starting the control plane", err=True)
    began = time.monotonic()
    async with open_lab(options.state / "lab") as lab:
        for number, (arm, repeat) in enumerate(missing):
            seen = (time.monotonic() - began) / number if number else _EXPECTED
            left = seen * (len(missing) - number)
            click.echo(f"[{number + 1}/{len(missing)}] {left:.0f} s left: {arm.name}, run {repeat}", err=True)
            deployed = await lab.deploy(arm)
            record = _record(arm, repeat, deployed.placement)
            if deployed.scheduler is not None:
                record = msgspec.structs.replace(
                    record, p50_ms=deployed.scheduler.p50_ms, p99_ms=deployed.scheduler.p99_ms
                )
            with path.open("ab") as out:
                out.write(msgspec.json.encode(record) + b"\n")
            variance = use_of(deployed.placement).variance
            click.echo(f"    {groups(deployed.placement)}: variance {variance:.1f} %²", err=True)


def _record(arm: Arm, repeat: int, placement: Placement) -> RunRecord:
    return RunRecord(arm.name, arm.weight, repeat, placement, datetime.now(UTC).isoformat(timespec="seconds"))


def _read(path: Path) -> list[RunRecord]:
    """A line that was cut off is left out: its run is made again."""
    records = []
    for line in path.read_bytes().splitlines() if path.exists() else ():
        try:
            records.append(msgspec.json.decode(line, type=RunRecord))
        except msgspec.DecodeError:
            continue
    return records
