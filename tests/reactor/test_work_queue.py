from __future__ import annotations

import asyncio

import pytest

from reactor.work_queue import MAX_YIELD, WorkQueue
from tests.support.clock import NOW, VirtualClock


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


async def test_equal_keys_collapse_and_keep_the_time_of_the_first_call(clock: VirtualClock) -> None:
    work_queue = WorkQueue(clock)
    work_queue.add("a")
    await clock.advance(0.5)
    work_queue.add("a")
    work_queue.add("b")

    waiting = asyncio.create_task(work_queue.next(10))
    await clock.advance(0.01)

    assert await waiting == {"a": NOW, "b": NOW + 0.5}


async def test_a_call_ends_the_waiting_after_the_burst_is_gathered(clock: VirtualClock) -> None:
    work_queue = WorkQueue(clock, gather=0.2)
    waiting = asyncio.create_task(work_queue.next(10))
    await clock.advance(3)
    work_queue.add("a")
    await clock.advance(0.1)
    assert not waiting.done()

    work_queue.add("b")
    await clock.advance(0.1)

    assert set(await waiting) == {"a", "b"}


async def test_silence_ends_it_too(clock: VirtualClock) -> None:
    work_queue = WorkQueue(clock)
    waiting = asyncio.create_task(work_queue.next(10))

    await clock.advance(9.9)
    assert not waiting.done()
    await clock.advance(0.1)

    assert await waiting == {}


async def test_keys_added_between_two_calls_are_not_lost(clock: VirtualClock) -> None:
    work_queue = WorkQueue(clock)
    for key in ("a", "b"):
        work_queue.add(key)
        waiting = asyncio.create_task(work_queue.next(10))
        await clock.advance(0.01)
        assert set(await waiting) == {key}


async def test_a_cancelled_wait_leaves_no_task_behind(clock: VirtualClock) -> None:
    work_queue = WorkQueue(clock)
    waiting = asyncio.create_task(work_queue.next(10))
    await clock.settle()

    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    await clock.settle()

    assert asyncio.all_tasks() == {asyncio.current_task()}


async def gave_way_within(seconds: float, work_queue: WorkQueue) -> bool:
    done, waiting = await asyncio.wait({asyncio.create_task(work_queue.yield_to_cycle())}, timeout=seconds)
    for task in waiting:
        task.cancel()
    return bool(done)


async def test_bulk_work_yields_to_a_cycle(clock: VirtualClock) -> None:
    work_queue = WorkQueue(clock)
    await work_queue.yield_to_cycle()

    waiting = asyncio.create_task(work_queue.next(60.0))
    await clock.advance(0.0)
    await work_queue.yield_to_cycle()

    work_queue.add("a")
    bulk = asyncio.create_task(work_queue.yield_to_cycle())
    await clock.advance(1.0)
    assert waiting.done()
    assert not bulk.done()

    waiting = asyncio.create_task(work_queue.next(60.0))
    await clock.advance(0.0)
    await bulk
    waiting.cancel()


async def test_bulk_work_does_not_wait_where_nothing_takes_the_keys(clock: VirtualClock) -> None:
    work_queue = WorkQueue(clock)
    work_queue.add("a")

    assert await gave_way_within(MAX_YIELD / 2, work_queue)


async def test_bulk_work_does_not_wait_for_ever(clock: VirtualClock) -> None:
    work_queue = WorkQueue(clock)
    work_queue.add("a")
    waiting = asyncio.create_task(work_queue.next(60.0))
    await clock.advance(1.0)
    await waiting

    async with asyncio.timeout(MAX_YIELD / 2):
        await work_queue.yield_to_cycle(0.01)
