"""The usage history: CPU of recording, bytes on disk, and how fast it is read.

Usage is synthetic: a daily wave with noise, of another size for every pod. A simulated month is made of the documents
of one block of 256 pods, stored under as many block numbers as the cluster needs: sizes are linear in blocks.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from reactor.history.chunk import Chunk, Columns
from reactor.history.codes import Floats, encode
from reactor.history.levels import FIVE_MINUTES, HOURS, MINUTES, Axis
from reactor.history.minute import Measured, Minute
from reactor.history.past_needs import read_past_needs
from reactor.history.rolling import roll_up
from reactor.history.rollup import hour_of, merged, with_step
from reactor.history.series import BLOCK_SERIES, SeriesIndex
from reactor.history.usage_series import read_series
from reactor.settings.model import HistoryPeak
from storage.limits import Limits
from storage.rows import ChunkRow, SeriesRow
from storage.store import Store

DAY = 86400
END = 20_000 * DAY
RECORDED = 20_000
RECORDED_MINUTES = 61
READ = 150_000
CPU_BAR, BYTES_BAR, NEEDS_BAR, SERIES_BAR = 0.10, 4.0, 5.0, 0.050
AXES = len(Axis)
PATIENT = Limits(flush_seconds=3600.0, call_seconds=300.0)


@dataclass(frozen=True, slots=True)
class Sizes:
    """Typical amounts of one block of pods, by axis."""

    typical: dict[Axis, Floats]

    @classmethod
    def drawn(cls, pods: int, draw: np.random.Generator) -> Sizes:
        spread = {Axis.CPU: (-2, 1.2), Axis.MEMORY: (19, 1), Axis.NETWORK: (12, 2), Axis.DISK: (9, 2)}
        typical = {axis: draw.lognormal(*shape, pods) for axis, shape in spread.items()}
        return cls({**typical, Axis.THROTTLED: np.where(draw.random(pods) < 0.1, 0.1, 0.0)})

    def at(self, times: Floats, draw: np.random.Generator) -> dict[Axis, tuple[Floats, Floats]]:
        """Means and maxima of minutes, one row per pod."""
        wave = 1 + 0.5 * np.sin(2 * np.pi * times / DAY)
        noise = {Axis.CPU: 0.15, Axis.MEMORY: 0.02, Axis.NETWORK: 0.3, Axis.DISK: 0.5, Axis.THROTTLED: 0.0}
        found = {}
        for axis, typical in self.typical.items():
            base = typical[:, None] * (wave if axis is not Axis.MEMORY else 1.0)
            means = base * draw.lognormal(0, noise[axis], (len(typical), len(times)))
            found[axis] = means, means * (1 + np.abs(draw.normal(0, noise[axis] / 2, means.shape)))
        steady = {Axis.SUCCESSES: 6.0, Axis.FAILURES: 0.0, Axis.READY: 1.0}
        shape = (len(typical), len(times))
        return found | {axis: (np.full(shape, value), np.full(shape, value)) for axis, value in steady.items()}


async def recording(folder: Path) -> bool:
    """An hour of minutes with its roll-up, as the controller does it, without the collection of the samples."""
    draw = np.random.default_rng(1)
    sizes, series = Sizes.drawn(RECORDED, draw), SeriesIndex()
    names = [f"shop/pod-{number}" for number in range(RECORDED)]
    spent = 0.0
    async with await Store.open(folder / "recording.db", PATIENT) as store:
        for number in range(RECORDED_MINUTES):
            start = END + number * MINUTES.step
            values = sizes.at(np.array([float(start)]), draw)
            began = time.process_time()
            axes = {
                axis: Measured(np.full(RECORDED, 4), mean[:, 0], most[:, 0]) for axis, (mean, most) in values.items()
            }
            minute = Minute(start, series.assign("pod", names, start), np.ones(RECORDED, np.uint32), axes)
            store.add_chunks(*minute.rows())
            store.add_series(*series.take_changed())
            await store.flush()
            spent += time.process_time() - began
        began = time.process_time()
        await roll_up(store, END + HOURS.step + MINUTES.step)
        rolled = time.process_time() - began
    share = (spent / RECORDED_MINUTES + rolled / 60) / 60
    print(
        f"recording {RECORDED:,} pods: {1000 * spent / RECORDED_MINUTES:.0f} ms of CPU per minute,"
        f" {rolled:.1f} s per hour for roll-ups: {share:.1%} of a core (bar {CPU_BAR:.0%})"
    )
    return share <= CPU_BAR


def month_of_a_block(days: int) -> list[ChunkRow]:
    """Five minutes and hours."""
    draw = np.random.default_rng(2)
    sizes, ids = Sizes.drawn(BLOCK_SERIES, draw), np.arange(1, BLOCK_SERIES + 1, dtype=np.uint32)
    nodes = np.full((BLOCK_SERIES, 60), 9, np.uint32)
    rows = []
    for start in range(END - days * DAY, END, DAY):
        day = None
        for hour in range(start, start + DAY, HOURS.step):
            values = sizes.at(hour + 60.0 * np.arange(60, dtype=np.float64), draw)
            counts = np.full((BLOCK_SERIES, 60), 4, np.uint32)
            axes = {axis: Columns(counts, encode(mean), encode(most)) for axis, (mean, most) in values.items()}
            minutes = Chunk(ids, nodes, axes)
            five = merged(minutes, FIVE_MINUTES.step // MINUTES.step)
            rows.append(ChunkRow(FIVE_MINUTES.step, hour, 0, five.to_bytes()))
            day = with_step(day, (hour - start) // HOURS.step, hour_of(minutes), HOURS.buckets)
        assert day is not None
        rows.append(ChunkRow(HOURS.step, start, 0, day.to_bytes()))
    return rows


async def month(folder: Path, rows: list[ChunkRow], pods: int) -> bool:
    blocks = -(-pods // BLOCK_SERIES)
    async with await Store.open(folder / f"month-{pods}.db", PATIENT) as store:
        empty = await store.used_bytes()
        await _fill(store, rows, blocks)
        used = await store.used_bytes() - empty
        buckets = blocks * BLOCK_SERIES * 30 * (DAY // FIVE_MINUTES.step + DAY // HOURS.step)
        each = used / (buckets * AXES)
        times = []
        for _ in range(5):
            began = time.perf_counter()
            found = await read_series(store, "pod", "shop/pod-7", END - DAY, END, FIVE_MINUTES)
            times.append(time.perf_counter() - began)
            assert found is not None
            assert len(found.times) == DAY // FIVE_MINUTES.step
    print(
        f"30 days of {blocks * BLOCK_SERIES:,} pods: {used / 2**20:.0f} MiB, {each:.2f} bytes per axis and bucket"
        f" with mean, maximum, count and histogram (bar {BYTES_BAR:g}); a day of one pod in {1000 * min(times):.0f} ms"
        f" (bar {1000 * SERIES_BAR:g})"
    )
    return each <= BYTES_BAR and min(times) <= SERIES_BAR


async def needs(folder: Path, rows: list[ChunkRow]) -> bool:
    hours = [row for row in rows if row.step == HOURS.step][-7:]
    async with await Store.open(folder / "needs.db", PATIENT) as store:
        await _fill(store, hours, -(-READ // BLOCK_SERIES))
        began, spent = time.perf_counter(), time.process_time()
        found = await read_past_needs(store, END, 7 * DAY, HistoryPeak.P99)
        took, spent = time.perf_counter() - began, time.process_time() - spent
    print(f"needs of {len(found.hours):,} pods, 7 days: {took:.1f} s, {spent:.1f} s of CPU (bar {NEEDS_BAR:g} s)")
    return spent <= NEEDS_BAR


async def _fill(store: Store, rows: list[ChunkRow], blocks: int) -> None:
    """The documents of all blocks have the ids of the first one: it costs readers the same."""
    for block in range(blocks):
        first = block * BLOCK_SERIES
        numbers = range(first + 1, first + BLOCK_SERIES + 1)
        store.add_series(*(SeriesRow(number, "pod", f"shop/pod-{number}", block, END) for number in numbers))
        store.add_chunks(*(ChunkRow(row.step, row.start, block, row.document) for row in rows))
        await store.flush()


async def run(wanted: list[str]) -> int:
    reached = []
    with TemporaryDirectory() as name:
        folder = Path(name)
        if "recording" in wanted:
            reached.append(await recording(folder))
        rows = month_of_a_block(30 if "month" in wanted else 7)
        if "month" in wanted:
            reached += [await month(folder, rows, pods) for pods in (1_000, 10_000)]
        if "needs" in wanted:
            reached.append(await needs(folder, rows))
    return 0 if all(reached) else 1


if __name__ == "__main__":
    parts = ["recording", "month", "needs"]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("only", nargs="*", help=f"any of: {' '.join(parts)}")
    sys.exit(asyncio.run(run(parser.parse_args().only or parts)))
