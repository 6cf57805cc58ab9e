"""Two small shapes of concurrency that asyncio lacks in 3.11."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any

Work = Coroutine[Any, Any, object]


async def first_of(*work: Work) -> None:
    """Returns when one of them ends; the others are cancelled."""
    async with together(*work) as tasks:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)


@asynccontextmanager
async def together(*work: Work) -> AsyncIterator[list[asyncio.Task[object]]]:
    """Runs them while the block runs; a failure among them is raised at the end of it."""
    tasks = [asyncio.create_task(item) for item in work]
    try:
        yield tasks
    finally:
        for task in tasks:
            task.cancel()
        ends = await asyncio.gather(*tasks, return_exceptions=True)
    for end in ends:
        if isinstance(end, Exception):
            raise end
