"""Runs planners in threads of their own, with a deadline."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from reactor.errors import PlannerError

T = TypeVar("T")

MOST_LEFT_BEHIND = 3
"""Threads that may still run after their deadline. Python cannot end them, so no more are started."""


class PlanningThread:
    """A thread per plan: a large problem takes a while, and watches and probes must not wait for it. The threads do not
    keep the process from ending."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._left_behind: list[asyncio.Future[None]] = []

    async def run(self, solve: Callable[[], T], seconds: float) -> T:
        """Raises PlannerError when there is no plan in time, or when too many earlier ones still run."""
        self._left_behind = [ended for ended in self._left_behind if not ended.done()]
        if len(self._left_behind) >= MOST_LEFT_BEHIND:
            raise PlannerError(f"{len(self._left_behind)} plans that were given up still run; no other one is made")
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[T] = loop.create_future()
        ended: asyncio.Future[None] = loop.create_future()

        def settle(result: T | None, error: BaseException | None) -> None:
            ended.set_result(None)
            if answer.done():
                return
            if error is None:
                answer.set_result(result)  # type: ignore[arg-type]
            else:
                answer.set_exception(error)

        def work() -> None:
            result, failure = None, None
            try:
                result = solve()
            except BaseException as error:  # noqa: BLE001 - the caller gets it
                failure = error
            with suppress(RuntimeError):  # the event loop has ended meanwhile
                loop.call_soon_threadsafe(settle, result, failure)

        threading.Thread(target=work, name=self._name, daemon=True).start()
        try:
            return await asyncio.wait_for(answer, seconds)
        except TimeoutError:
            if ended.done():  # it is the planner's own error
                raise
            self._left_behind.append(ended)
            raise PlannerError(f"no plan within {seconds:g} s") from None
