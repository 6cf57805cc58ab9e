from __future__ import annotations

import asyncio
from functools import partial

import pytest

from reactor.execution.some_at_once import some_at_once


async def test_answers_come_in_order_and_never_too_many_are_asked_for() -> None:
    waiting = most = 0

    async def answer(number: int) -> int:
        nonlocal waiting, most
        waiting += 1
        most = max(most, waiting)
        await asyncio.sleep(0.001 * (5 - number))
        waiting -= 1
        return number

    calls = [partial(answer, number) for number in range(5)]

    assert await some_at_once(calls, 2) == [0, 1, 2, 3, 4]
    assert most == 2
    assert await some_at_once([], 2) == []


async def test_a_failure_ends_the_others() -> None:
    ended: list[str] = []

    async def fail() -> None:
        raise ValueError("no")

    async def wait() -> None:
        try:
            await asyncio.sleep(30)
        finally:
            ended.append("cancelled")

    with pytest.raises(ExceptionGroup):
        await some_at_once([wait, fail], 2)
    assert ended == ["cancelled"]
