from __future__ import annotations

import threading

import pytest

from reactor.errors import PlannerError
from reactor.planning.planning_thread import MOST_LEFT_BEHIND, PlanningThread


async def test_a_plan_and_an_error_come_back() -> None:
    thread = PlanningThread("test")
    assert await thread.run(lambda: 7, 5.0) == 7

    def fail() -> None:
        raise TimeoutError("its own")

    with pytest.raises(TimeoutError, match="its own"):
        await thread.run(fail, 5.0)


async def test_plans_that_never_end_are_given_up_and_do_not_pile_up() -> None:
    thread, release = PlanningThread("never ends"), threading.Event()
    for _ in range(MOST_LEFT_BEHIND):
        with pytest.raises(PlannerError, match=r"no plan within 0\.01 s"):
            await thread.run(lambda: release.wait(30), 0.01)
    with pytest.raises(PlannerError, match="still run"):
        await thread.run(lambda: 7, 1.0)
    assert named("never ends") == MOST_LEFT_BEHIND

    release.set()
    while named("never ends"):
        await thread_turn()
    assert await thread.run(lambda: 7, 1.0) == 7


def named(name: str) -> int:
    return sum(thread.name == name for thread in threading.enumerate())


async def thread_turn() -> None:
    await PlanningThread("turn").run(lambda: None, 5.0)
