from __future__ import annotations

import asyncio

import pytest

from loadtests.experiments.stable.real.cpu_delay import CpuDelayMonitor
from reactor.errors import RematchError


async def feed(lines: asyncio.StreamReader, text: bytes) -> None:
    lines.feed_data(text)
    await asyncio.sleep(0)
    await asyncio.sleep(0)


async def test_the_mean_since_it_was_last_asked() -> None:
    lines = asyncio.StreamReader()
    cpu_delay = CpuDelayMonitor(lines)
    await feed(lines, b"1.0\n2.0\n")
    assert cpu_delay.take() == 1.5
    assert cpu_delay.take() is None, "silence is not zero"
    await cpu_delay.close()


@pytest.mark.parametrize("log_tail", [b"", b"Traceback\n"])
async def test_a_dead_one_is_noticed(log_tail: bytes) -> None:
    lines = asyncio.StreamReader()
    cpu_delay = CpuDelayMonitor(lines)
    lines.feed_data(log_tail)
    lines.feed_eof()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    with pytest.raises(RematchError, match="has ended"):
        cpu_delay.take()
    await cpu_delay.close()


async def test_it_runs_and_ends_with_the_block() -> None:
    async with CpuDelayMonitor.running() as cpu_delay, asyncio.timeout(30):
        while (delay := cpu_delay.take()) is None:
            await asyncio.sleep(0.05)
    assert delay >= 0
