"""Rolls complete hours up, once each, however often the process ends in between.

The minutes stay for some hours. An hour is done when its five-minute steps are stored, which is the last thing written.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterator, Sequence

import structlog

from reactor.history.chunk import Chunk, ChunkError
from reactor.history.levels import FIVE_MINUTES, HOURS, MINUTES
from reactor.history.rollup import hour_of, joined, merged, with_step
from storage.rows import ChunkRow
from storage.store import Store

log = structlog.get_logger(__name__)

_BLOCKS = 16
"""Read at once."""


async def roll_up(store: Store, now: float) -> int:
    """All hours before the current one that are not rolled up yet; returns the number of chunks that were made."""
    await store.flush()
    made = 0
    for hour, blocks in sorted((await _due(store, now)).items()):
        for begin in range(0, len(blocks), _BLOCKS):
            made += await _roll_hour(store, hour, blocks[begin : begin + _BLOCKS])
        await store.flush()  # the next hour of the day is added to the same row
    return made


async def _due(store: Store, now: float) -> dict[int, list[int]]:
    """Blocks by hour."""
    minutes = await store.chunk_keys(MINUTES.step)
    oldest = minutes[0][0] if minutes else now
    done = set(await store.chunk_keys(FIVE_MINUTES.step, FIVE_MINUTES.start_of(oldest)))
    found: defaultdict[int, set[int]] = defaultdict(set)
    for start, block in minutes:
        hour = FIVE_MINUTES.start_of(start)
        if hour + HOURS.step <= now and (hour, block) not in done:
            found[hour].add(block)
    return {hour: sorted(blocks) for hour, blocks in found.items()}


async def _roll_hour(store: Store, hour: int, blocks: Sequence[int]) -> int:
    minutes = await store.chunks(MINUTES.step, hour, hour + HOURS.step, blocks)
    day = HOURS.start_of(hour)
    days = {row.block: row for row in await store.chunks(HOURS.step, day, day + 1, blocks)}
    rows = await asyncio.to_thread(lambda: list(_rolled(minutes, days, hour)))
    store.add_chunks(*rows)
    return len(rows)


def _rolled(minutes: Sequence[ChunkRow], days: dict[int, ChunkRow], hour: int) -> Iterator[ChunkRow]:
    """The hour comes before the five minutes: these say that it is done."""
    by_block: defaultdict[int, dict[int, Chunk]] = defaultdict(dict)
    for row in minutes:
        chunk = read_chunk(row)
        if chunk is not None:
            by_block[row.block][(row.start - hour) // MINUTES.step] = chunk
    for block, steps in by_block.items():
        whole = joined(steps, HOURS.step // MINUTES.step)
        day = HOURS.start_of(hour)
        before = read_chunk(days[block]) if block in days else None
        hours = with_step(before, (hour - day) // HOURS.step, hour_of(whole), HOURS.buckets)
        yield ChunkRow(HOURS.step, day, block, hours.to_bytes())
        yield ChunkRow(FIVE_MINUTES.step, hour, block, merged(whole, FIVE_MINUTES.step // MINUTES.step).to_bytes())


def read_chunk(row: ChunkRow) -> Chunk | None:
    """None for a damaged one, which is a gap of the history and no reason to stop."""
    try:
        return Chunk.from_bytes(row.document)
    except ChunkError as error:
        damaged(row, error)
        return None


def damaged(row: ChunkRow, error: ChunkError) -> None:
    log.warning("a damaged chunk of usage is left out", start=row.start, step=row.step, error=str(error))
