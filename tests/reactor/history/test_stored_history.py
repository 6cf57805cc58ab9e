"""The usage history in a real store: rolled up once, read back, and what a killed process loses."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import numpy as np
import pytest

from reactor.history.levels import FIVE_MINUTES, HOURS, MINUTES, NEEDED, Axis, Level
from reactor.history.past_needs import read_past_needs
from reactor.history.rolling import roll_up
from reactor.history.series import BLOCK_SERIES, SeriesIndex
from reactor.history.usage_series import finest, read_series
from reactor.settings.model import HistoryPeak
from storage.limits import Limits
from storage.store import Store
from tests.reactor.history.builders import add, minute

DAY = 86400
START = 20 * DAY
"""Midnight."""


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    async with await Store.open(tmp_path / "rematch.db", Limits(flush_seconds=30.0)) as opened:
        yield opened


def cpu_of(at: int) -> float:
    """1 core, and 3 in the last minute of every hour."""
    return 3.0 if at % 3600 == 3540 else 1.0


async def fill(store: Store, begin: int, end: int, names: tuple[str, ...] = ("shop/web",)) -> None:
    series = SeriesIndex(await store.series())
    chunks = [
        row
        for at in range(begin, end, 60)
        for row in minute(
            series, at, {Axis.CPU: {n: [cpu_of(at)] for n in names}, Axis.MEMORY: {n: [2e8] for n in names}}
        )
    ]
    await add(store, series, chunks)


async def test_complete_hours_are_rolled_up_once(store: Store) -> None:
    await fill(store, START, START + 2 * 3600 + 600)
    assert await roll_up(store, START + 2 * 3600 + 600) == 4, "two hours, at two levels"
    assert await roll_up(store, START + 2 * 3600 + 600) == 0
    assert [row.start for row in await store.chunks(300, 0, 2 * START)] == [START, START + 3600]
    assert [row.start for row in await store.chunks(3600, 0, 2 * START)] == [START]


async def test_an_hour_that_was_half_rolled_up_is_rolled_up_again(store: Store) -> None:
    await fill(store, START, START + 3600)
    await roll_up(store, START + 3600)
    (hours,) = await store.chunks(3600, 0, 2 * START)
    async with store._writer.transaction() as connection:
        await connection.exec_driver_sql("DELETE FROM usage_chunks WHERE step = 300")
    assert await roll_up(store, START + 3600) == 2
    assert await store.chunks(3600, 0, 2 * START) == [hours]


@pytest.mark.parametrize(
    ("level", "buckets", "middle"), [(MINUTES, 150, 1.0), (FIVE_MINUTES, 30, 1.0), (HOURS, 3, 62 / 60)]
)
async def test_a_series_has_what_is_rolled_up_and_what_is_not_yet(
    store: Store, level: Level, buckets: int, middle: float
) -> None:
    await fill(store, START, START + 9000)
    await roll_up(store, START + 9000)
    found = await read_series(store, "pod", "shop/web", START, START + 9000, level)
    assert found is not None
    cpu = found.axes[Axis.CPU]
    assert len(found.times) == len(cpu.mean) == buckets
    assert found.times[0] == START
    assert not np.isnan(cpu.mean).any()
    assert cpu.mean[0] == pytest.approx(middle, rel=0.011)
    assert np.nanmax(cpu.maximum) == pytest.approx(3.0, rel=0.006)
    assert cpu.samples.sum() == 150
    assert await read_series(store, "pod", "shop/unknown", START, START + 9000, MINUTES) is None


async def test_gaps_are_gaps(store: Store) -> None:
    await fill(store, START, START + 600)
    await fill(store, START + 1200, START + 1800)
    found = await read_series(store, "pod", "shop/web", START, START + 1800, MINUTES)
    assert found is not None
    assert np.isnan(found.axes[Axis.CPU].mean).tolist() == [False] * 10 + [True] * 10 + [False] * 10


def test_long_times_have_large_steps() -> None:
    now = 100.0 * DAY
    assert finest(now - 3600, now, now) is MINUTES
    assert finest(now - DAY, now, now) is FIVE_MINUTES
    assert finest(now - 20 * DAY, now, now) is HOURS
    assert finest(now - 40 * DAY, now - 39 * DAY, now) is HOURS


async def test_needs_are_those_of_the_window(store: Store) -> None:
    await fill(store, START, START + DAY, ("shop/web", "shop/api"))
    await roll_up(store, START + DAY)
    found = await read_past_needs(store, START + DAY + 100, 12 * 3600, HistoryPeak.MAX)
    row = found.pods["shop/web"]
    assert found.hours[row] == 12
    assert found.means[row] == pytest.approx([62 / 60, 2e8], rel=0.011)
    assert found.peaks[row] == pytest.approx([3.0, 2e8], rel=0.006)
    assert found.idle[row] == pytest.approx(1.0, rel=0.06)
    sustained = await read_past_needs(store, START + DAY + 100, 12 * 3600, HistoryPeak.P95)
    assert sustained.peaks[row, 0] == pytest.approx(1.0, rel=0.1)


async def test_a_replacement_inherits_the_history_of_its_workload(store: Store) -> None:
    series = SeriesIndex()
    for at in range(START, START + 2 * 3600, 60):
        of_both = {"shop/ReplicaSet/web": [1.0, 2.0]}, {"shop/ReplicaSet/web": [2e8]}
        rows = minute(series, at, dict(zip(NEEDED, of_both, strict=True)), "workload")
        rows += minute(series, at, {Axis.CPU: {"shop/web-old": [1.0]}, Axis.MEMORY: {"shop/web-old": [1e8]}})
        store.add_chunks(*rows)
    await add(store, series, ())
    await roll_up(store, START + 2 * 3600)
    found = await read_past_needs(store, START + 2 * 3600, DAY, HistoryPeak.MAX)
    pods = [("shop/web-old", "shop/ReplicaSet/web"), ("shop/web-new", "shop/ReplicaSet/web"), ("shop/x", "shop/Pod/x")]
    own, inherited, unknown = found.rows_of(pods, 3600.0).tolist()
    assert found.means[own, 0] == pytest.approx(1.0, rel=0.006)
    assert found.means[inherited, 0] == pytest.approx(1.5, rel=0.006)
    assert unknown == -1
    assert found.rows_of(pods, 3 * 3600.0).tolist() == [-1, -1, -1], "too short to count"


async def test_a_damaged_chunk_is_a_gap(store: Store) -> None:
    await fill(store, START, START + 3 * 3600)
    await roll_up(store, START + 2 * 3600)
    async with store._writer.transaction() as connection:
        await connection.exec_driver_sql(
            f"UPDATE usage_chunks SET document = x'00' WHERE (step = 60 AND start = {START + 7200 + 600}) OR step = 300"
        )
    assert await roll_up(store, START + 3 * 3600) == 2
    found = await read_series(store, "pod", "shop/web", START, START + 3 * 3600, FIVE_MINUTES)
    assert found is not None
    assert np.isnan(found.axes[Axis.CPU].mean).sum() == 24
    needs = await read_past_needs(store, START + 3 * 3600, DAY, HistoryPeak.MAX)
    assert needs.hours.tolist() == [3]


def test_new_series_fill_the_room_that_others_left() -> None:
    series = SeriesIndex()
    first = series.assign("pod", [f"shop/{number}" for number in range(BLOCK_SERIES + 1)], 0.0)
    assert [row.block for row in first].count(0) == BLOCK_SERIES
    kept = [row.name for row in first if row.block == 0][10:]
    later = series.assign("pod", [*kept, "shop/new"], 60.0)
    assert later[-1].block == 0
    assert later[-1].id == BLOCK_SERIES + 2
    again = SeriesIndex(first).assign("pod", ["shop/3"], 120.0)
    assert again == [first[3]]
    assert series.assign("node", ["n1"], 60.0)[0].block == 2, "blocks are of one kind"


CHILD = """
import asyncio, sys
from reactor.history.levels import Axis
from reactor.history.rolling import roll_up
from reactor.history.series import SeriesIndex
from storage.store import Store
from tests.reactor.history.builders import minute

async def main():
    store = await Store.open(sys.argv[1])
    series = SeriesIndex(await store.series())
    done = [start for start, _ in await store.chunk_keys(60)]
    at = done[-1] + 60 if done else 0
    while True:
        store.add_chunks(*minute(series, at, {Axis.CPU: {"shop/web": [1.0], "shop/api": [2.0]}}))
        store.add_series(*series.take_changed())
        await store.flush()
        print(at, flush=True)
        at += 60
        if at % 3600 == 0:
            await roll_up(store, at)

asyncio.run(main())
"""


def run_and_kill(database: Path) -> int:
    """The last minute that a process said it has written."""
    written = -60
    for seconds in (0.4, 0.05, 0.21, 0.12, 0.33):
        child = subprocess.Popen(
            [sys.executable, "-c", CHILD, str(database)],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": "."},
        )
        assert child.stdout is not None
        child.stdout.readline()
        time.sleep(seconds)
        child.send_signal(signal.SIGKILL)
        lines = [int(line) for line in child.stdout.read().split()]
        child.wait(10)
        child.stdout.close()
        written = max([written, *lines])
    return written


async def test_kill_9_at_any_moment_loses_at_most_the_last_batch(tmp_path: Path) -> None:
    database = tmp_path / "rematch.db"
    written = await asyncio.to_thread(run_and_kill, database)
    with sqlite3.connect(database) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()
    async with await Store.open(database) as store:
        starts = [start for start, _ in await store.chunk_keys(60)]
        assert starts == list(range(0, starts[-1] + 60, 60)), "no minute that was written is lost, none is twice"
        assert starts[-1] >= written
        await roll_up(store, starts[-1] + 60)
        hours = (starts[-1] + 60) // 3600
        assert len(await store.chunks(300, 0, 1e9)) == hours
        needs = await read_past_needs(store, starts[-1] + 60, 7 * DAY, HistoryPeak.MAX)
        if hours:
            assert needs.hours.tolist() == [hours, hours]
            assert sorted(needs.means[:, 0].round(2)) == [1.0, 2.0]
