"""The kernels are compiled when the cluster has become large, once, and not before."""

from __future__ import annotations

import asyncio

import pytest

from reactor.background import start_up
from reactor.background.start_up import CHECK_EVERY, KernelCompilation
from tests.support.clock import eventually
from tests.support.cluster import make_node, make_pod, make_settings
from tests.support.rig import Rig


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    times: list[float] = []

    def warm_up() -> float:
        times.append(1.0)
        return 1.0

    monkeypatch.setattr(start_up, "warm_up", warm_up)
    monkeypatch.setattr(start_up, "LARGE", 2)
    return times


async def test_a_cluster_that_grows_is_compiled_for_once(compiled: list[float]) -> None:
    rig = Rig()
    rig.sync(make_pod("web-1"), make_node())
    compilation = KernelCompilation(rig.state, rig.clock)
    running = asyncio.create_task(compilation.run())
    await rig.clock.advance(CHECK_EVERY)
    assert compiled == []

    rig.put(make_pod("web-2"))
    await rig.clock.advance(CHECK_EVERY)
    await eventually(running.done)
    await compilation.compile_if_large()
    assert compiled == [1.0]


async def test_a_large_cluster_is_compiled_for_before_the_first_decision(compiled: list[float]) -> None:
    rig = Rig()
    rig.sync(make_pod("web-1"), make_pod("web-2"), make_node())
    await KernelCompilation(rig.state, rig.clock).compile_if_large()
    assert compiled == [1.0]


async def test_a_scope_in_which_few_pods_are_matched_needs_no_kernels(compiled: list[float]) -> None:
    rig = Rig(make_settings(mode="act", planner={"scope": "unhappy"}))
    rig.sync(make_node(), *(make_pod(f"web-{number}") for number in range(30)))
    await KernelCompilation(rig.state, rig.clock, lambda: rig.settings).compile_if_large()
    assert compiled == []

    rig.put(*(make_pod(f"web-{number}") for number in range(30, 50)))
    await KernelCompilation(rig.state, rig.clock, lambda: rig.settings).compile_if_large()
    assert compiled == [1.0]
