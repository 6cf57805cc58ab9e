"""`rematch lab experiment hpa`: bursts of load on three autoscalers side by side."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import click
import msgspec

from loadtests.experiments.hpa.lab import Burst, open_lab
from loadtests.experiments.hpa.report import ArmRecord, BurstRecord, write_report
from loadtests.progress_bar import Progress, ProgressBar
from loadtests.report_page import copy_report
from loadtests.tools.state_folder import claimed
from loadtests.workloads.samples import RequestOutcome
from reactor.cli.stopping import until_stopped
from reactor.record.logs import configure_logs

_BURSTS = "bursts.jsonl"


@dataclass(frozen=True, slots=True)
class HpaOptions:
    repeats: int
    seconds: float
    pause: float
    resume: bool
    state: Path
    copy_to: Path | None


def main(options: HpaOptions) -> None:
    with claimed(options.state), (options.state / "experiment.log").open("a") as log:
        configure_logs(level="warning", json=True, stream=log)
        path = options.state / _BURSTS
        if not options.resume:
            path.unlink(missing_ok=True)
        stopped = asyncio.run(until_stopped(_run(options, path)))
        if stopped:
            click.echo("\nstopped; what was measured so far is kept, --resume goes on from there", err=True)
        page = write_report(options.state, read_records(path), partial=stopped)
        click.echo(f"{'partial report, of what was measured so far' if stopped else 'report'}: {page}")
        if options.copy_to is not None and not stopped:
            copy_report(options.state, options.copy_to, ("replicas.csv", "bursts.csv", "summary.json"))
            click.echo(f"copied to {options.copy_to}")


async def _run(options: HpaOptions, path: Path) -> None:
    """A session is one life of the lab: what the controller has learned goes with it."""
    known = read_records(path)
    missing = options.repeats - len(known)
    if missing <= 0:
        return
    session = 1 + max((record.session for record in known), default=0)
    bar = ProgressBar(time.monotonic)
    bar.show(Progress(len(known), options.repeats, "starting control plane and nodes"))
    async with open_lab(options.state / "lab") as lab:
        for number in range(1, missing + 1):
            bar.show(Progress(len(known) + number - 1, options.repeats, f"burst {number} of session {session}"))
            ends = time.monotonic() + options.seconds + options.pause
            record = _record(await lab.burst(options.seconds), session, number, options.seconds)
            with path.open("ab") as out:
                out.write(msgspec.json.encode(record) + b"\n")
            bar.show(Progress(len(known) + number, options.repeats, _said(record)))
            if number < missing:
                await asyncio.sleep(max(0.0, ends - time.monotonic()))


def _record(burst: Burst, session: int, number: int, seconds: float) -> BurstRecord:
    arms = {}
    for name, replicas in burst.replicas.items():
        own = [sample for sample in burst.samples if sample.app == name]
        failed = [round(each.start - burst.began, 2) for each in own if each.outcome is not RequestOutcome.OK]
        latencies = sorted(each.latency for each in own)
        p95 = latencies[int(0.95 * (len(latencies) - 1))] if latencies else None
        arms[name] = ArmRecord(len(own), failed, p95, replicas.times, replicas.wanted, replicas.ready)
    at = datetime.fromtimestamp(burst.began, UTC).isoformat(timespec="seconds")
    return BurstRecord(session, number, seconds, burst.due, at, arms)


def _said(record: BurstRecord) -> str:
    return ", ".join(
        f"{name}: {max(arm.ready, default=0)} replicas, {len(arm.failed)} of {arm.requests} failed"
        for name, arm in record.arms.items()
    )


def read_records(path: Path) -> Sequence[BurstRecord]:
    """A line that was cut off is left out: its burst is made again."""
    records = []
    for line in path.read_bytes().splitlines() if path.exists() else ():
        try:
            records.append(msgspec.json.decode(line, type=BurstRecord))
        except msgspec.DecodeError:
            continue
    return records
