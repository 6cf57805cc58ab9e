"""Several calls that wait for their answers together, but never too many of them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

T = TypeVar("T")

WRITES_AT_ONCE = 16
"""Evictions or bindings of one cycle that wait for their answers together."""


async def some_at_once(calls: Sequence[Callable[[], Awaitable[T]]], most: int) -> list[T]:
    """The answers in the order of the calls; the first failure cancels the rest."""
    free = asyncio.Semaphore(most)

    async def one(call: Callable[[], Awaitable[T]]) -> T:
        async with free:
            return await call()

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one(call)) for call in calls]
    return [task.result() for task in tasks]
