"""The kernels are compiled when the cluster has become large, once, and no plan waits for that."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

import pytest

from matching.compiled import loading
from reactor.background import start_up
from reactor.background.start_up import CHECK_EVERY, RETRY_AFTER, KernelCompilation, compile_elsewhere
from tests.support.clock import eventually
from tests.support.cluster import make_node, make_pod, make_settings
from tests.support.rig import Rig


class Compiler:
    """Answers when the test says so."""

    def __init__(self) -> None:
        self.asked = 0
        self.answers: asyncio.Queue[bool] = asyncio.Queue()

    async def __call__(self) -> bool:
        self.asked += 1
        return await self.answers.get()


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    times: list[float] = []

    def warm_up() -> float:
        times.append(1.0)
        return 1.0

    monkeypatch.setattr(start_up, "warm_up", warm_up)
    monkeypatch.setattr(start_up, "LARGE", 2)
    monkeypatch.setattr(loading, "LARGE", 2)
    monkeypatch.setattr(loading, "_loaded", [])
    return times


@asynccontextmanager
async def running(
    rig: Rig, compiler: Compiler, loaded: Callable[[], None] = lambda: None
) -> AsyncIterator[asyncio.Task[None]]:
    task = asyncio.create_task(KernelCompilation(rig.state, rig.clock, lambda: rig.settings, loaded, compiler).run())
    try:
        await asyncio.sleep(0)
        yield task
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def test_a_cluster_that_grows_is_compiled_for_once(loads: list[float]) -> None:
    rig, compiler = Rig(), Compiler()
    rig.sync(make_pod("web-1"), make_node())
    async with running(rig, compiler) as task:
        await rig.clock.advance(CHECK_EVERY)
        assert compiler.asked == 0

        rig.put(make_pod("web-2"))
        await rig.clock.advance(CHECK_EVERY)
        compiler.answers.put_nowait(True)
        await eventually(task.done)
    assert (compiler.asked, loads) == (1, [1.0])


async def test_plans_do_without_the_kernels_until_they_are_compiled(loads: list[float]) -> None:
    rig, compiler = Rig(), Compiler()
    rig.sync(make_pod("web-1"), make_pod("web-2"), make_node())
    loaded: list[object] = []
    async with running(rig, compiler, lambda: loaded.append(loading.kernels(2, 1))) as task:
        await eventually(lambda: compiler.asked == 1)
        assert loading.kernels(150_000, 5_000) is None

        compiler.answers.put_nowait(False)
        await eventually(compiler.answers.empty)
        assert loading.kernels(150_000, 5_000) is None

        compiler.answers.put_nowait(True)
        await rig.clock.advance(RETRY_AFTER)
        await eventually(task.done)
    assert loads == [1.0]
    assert loaded == [loading.kernels(150_000, 5_000)] != [None]


async def test_a_scope_in_which_few_pods_are_matched_needs_no_kernels(loads: list[float]) -> None:
    rig, compiler = Rig(make_settings(mode="act", planner={"scope": "unhappy"})), Compiler()
    rig.sync(make_node(), *(make_pod(f"web-{number}") for number in range(30)))
    async with running(rig, compiler):
        await rig.clock.advance(CHECK_EVERY)
        assert compiler.asked == 0

        rig.put(*(make_pod(f"web-{number}") for number in range(30, 50)))
        await rig.clock.advance(CHECK_EVERY)
        await eventually(lambda: compiler.asked == 1)


async def test_the_compiler_is_a_process_of_its_own() -> None:
    assert await compile_elsewhere()


async def test_a_compiler_that_fails_or_hangs_is_said_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(start_up, "COMMAND", ("sh", "-c", "echo no room >&2; exit 3"))
    assert not await compile_elsewhere()

    monkeypatch.setattr(start_up, "COMPILE_DEADLINE", 0.05)
    monkeypatch.setattr(start_up, "COMMAND", ("sleep", "60"))
    assert not await compile_elsewhere()
