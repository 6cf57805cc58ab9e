from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from reactor.web.api import LONGEST_PAUSE, MOST_AT_ONCE, RateLimited
from reactor.web.query import FindQuery
from reactor.web.view import FoundPods
from tests.reactor.web.small_view import Client, HandClock, SmallSource


class Versions:
    """Every call finds a change, unless `fixed`."""

    def __init__(self) -> None:
        self.now = 0
        self.fixed = False

    async def __call__(self) -> int:
        self.now += not self.fixed
        return self.now


async def test_nothing_is_computed_again_while_nothing_changes(clock: HandClock) -> None:
    computed: list[float] = []

    async def compute() -> int:
        computed.append(clock.monotonic())
        return len(computed)

    versions = Versions()
    versions.fixed = True
    view = RateLimited(compute, versions, clock)
    assert [await view.get(), await view.get()] == [1, 1]
    versions.now += 1
    assert [await view.get(), await view.get()] == [2, 2]


async def test_a_change_during_the_computation_is_seen_by_the_next_call(clock: HandClock) -> None:
    versions = Versions()
    versions.fixed = True

    async def compute() -> int:
        seen = versions.now
        versions.now = 1
        return seen

    view = RateLimited(compute, versions, clock)
    assert [await view.get(), await view.get()] == [0, 1]


async def test_a_value_is_never_older_than_the_call(clock: HandClock) -> None:
    computed: list[float] = []

    async def compute() -> float:
        computed.append(clock.monotonic())
        return clock.monotonic()

    view = RateLimited(compute, Versions(), clock)
    assert await view.get() == 1000.0
    assert await view.get() == 1000.0
    assert len(computed) == 2


async def test_a_costly_view_pauses_and_is_shared(clock: HandClock) -> None:
    begun: list[float] = []

    async def compute() -> int:
        begun.append(clock.monotonic())
        await clock.sleep(2.0)
        return len(begun)

    view = RateLimited(compute, Versions(), clock)
    first = asyncio.create_task(view.get())
    await clock.advance(2.0)
    assert await first == 1
    others = [asyncio.create_task(view.get()) for _ in range(5)]
    await clock.advance(7.0)
    assert begun == [1000.0]
    await clock.advance(1.0)
    await clock.advance(2.0)
    assert await asyncio.gather(*others) == [2] * 5
    assert begun == [1000.0, 1010.0]


async def test_a_pause_is_bounded(clock: HandClock) -> None:
    async def compute() -> float:
        await clock.sleep(100.0)
        return clock.monotonic()

    view = RateLimited(compute, Versions(), clock)
    first = asyncio.create_task(view.get())
    await clock.advance(100.0)
    await first
    second = asyncio.create_task(view.get())
    await clock.advance(LONGEST_PAUSE)
    await clock.advance(100.0)
    assert await second == 1000.0 + 100.0 + LONGEST_PAUSE + 100.0


async def test_a_failure_is_raised_and_the_next_try_does_not_wait(clock: HandClock) -> None:
    results: Iterator[ValueError | int] = iter([ValueError("broken"), 5])

    async def compute() -> int:
        result = next(results)
        if isinstance(result, ValueError):
            raise result
        return result

    view = RateLimited(compute, Versions(), clock)
    with pytest.raises(ValueError, match="broken"):
        await view.get()
    assert await view.get() == 5


async def test_a_flood_of_costly_requests_computes_few_at_once_and_delays_no_probe(
    client: Client, source: SmallSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    computing: list[str] = []
    done = asyncio.Event()

    async def find_pods(wanted: FindQuery) -> FoundPods:
        computing.append(wanted.name)
        await done.wait()
        return FoundPods((), 0, ())

    monkeypatch.setattr(source, "find_pods", find_pods)
    flood = [asyncio.create_task(client.get(f"/api/v1/find?name=web-{number}")) for number in range(10)]
    while len(computing) < MOST_AT_ONCE:
        await asyncio.sleep(0)
    assert (await client.get("/healthz")).status == 200
    assert len(computing) == MOST_AT_ONCE
    done.set()
    assert [answer.status for answer in await asyncio.gather(*flood)] == [200] * 10
    assert len(computing) == 10
