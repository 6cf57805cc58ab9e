"""The tests on real nodes: what is missing of them is run, and each run is on disk as soon as it is over."""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from loadtests.experiments.bnip.live.concurrency import ConcurrencyBench
from loadtests.experiments.bnip.live.design import (
    LOAD_SECONDS,
    PAPER_USERS,
    UPDATE_SECONDS,
    concurrency_runs,
    update_runs,
)
from loadtests.experiments.bnip.live.records import UpdateRun, UsersRun
from loadtests.experiments.bnip.live.updates import UpdateBench
from loadtests.progress_bar import Progress, ProgressBar
from loadtests.record_file import RecordFile

_SET_UP = 15.0
"""Seconds beside the load of an update, or of the users on a placement."""


@dataclass(frozen=True, slots=True)
class LiveFiles:
    updates: RecordFile[UpdateRun]
    users: RecordFile[UsersRun]

    @classmethod
    def below(cls, folder: Path) -> LiveFiles:
        return cls(
            RecordFile(folder / "live-updates.jsonl", UpdateRun), RecordFile(folder / "live-users.jsonl", UsersRun)
        )

    def forget(self) -> None:
        self.updates.forget()
        self.users.forget()


async def run_live(files: LiveFiles, repeats: int, folder: Path) -> None:
    await _run_updates(files.updates, repeats, folder)
    await _run_users(files.users, repeats)


async def _run_updates(file: RecordFile[UpdateRun], repeats: int, folder: Path) -> None:
    known = {each.key: each for each in file.read()}
    wanted = update_runs(repeats)
    missing = [
        (change, load, repeat)
        for change, load, repeat in wanted
        if (change.value, load.rate, load.connections, repeat) not in known
    ]
    if not missing:
        return
    rates = {(each.paper_rate, each.connections): each.rate for each in known.values()}
    bar = ProgressBar(time.monotonic, name="updates", expected=(UPDATE_SECONDS + _SET_UP) * len(wanted))
    steps = count(len(wanted) - len(missing))
    bar.show(Progress(next(steps), len(wanted), "starting the nodes"))
    async with UpdateBench.open(folder / "live-logs") as bench:
        for change, load, repeat in missing:
            kind = (load.rate, load.connections)
            if kind not in rates:
                rates[kind] = await bench.rate(load)
            run = await bench.run(change, load, repeat, rates[kind])
            file.add(run)
            last = f"{change} at {run.rate:g}/s, repeat {repeat}: {run.lost} of {run.requests} lost"
            bar.show(Progress(next(steps), len(wanted), last))


async def _run_users(file: RecordFile[UsersRun], repeats: int) -> None:
    known = {each.key for each in file.read()}
    wanted = concurrency_runs(repeats)
    missing = [
        (arm, repeat)
        for arm, repeat in wanted
        if not all((arm.name, repeat, users) in known for users in PAPER_USERS)
    ]  # fmt: skip
    if not missing:
        return
    bar = ProgressBar(
        time.monotonic, name="users", expected=(LOAD_SECONDS * len(PAPER_USERS) + 2 * _SET_UP) * len(wanted)
    )
    steps = count(len(wanted) - len(missing))
    bar.show(Progress(next(steps), len(wanted), "starting the nodes"))
    async with ConcurrencyBench.open() as bench:
        for arm, repeat in missing:
            async with bench.placed(arm) as placed:
                found = [await placed.run(users, repeat) for users in PAPER_USERS]
            for each in found:  # a placement counts as a whole, or not at all
                file.add(each)
            bar.show(Progress(next(steps), len(wanted), f"{arm.name}, repeat {repeat}"))
