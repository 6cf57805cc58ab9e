from __future__ import annotations

import asyncio

import pytest

from loadtests.experiment.real.canary import Canary
from reactor.errors import RematchError


async def told(lines: asyncio.StreamReader, text: bytes) -> None:
    lines.feed_data(text)
    await asyncio.sleep(0)
    await asyncio.sleep(0)


async def test_the_mean_since_it_was_last_asked() -> None:
    lines = asyncio.StreamReader()
    canary = Canary(lines)
    await told(lines, b"1.0\n2.0\n")
    assert canary.take() == 1.5
    assert canary.take() is None, "silence is not zero"
    await canary.close()


@pytest.mark.parametrize("last_words", [b"", b"Traceback\n"])
async def test_a_dead_one_is_noticed(last_words: bytes) -> None:
    lines = asyncio.StreamReader()
    canary = Canary(lines)
    lines.feed_data(last_words)
    lines.feed_eof()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    with pytest.raises(RematchError, match="is gone"):
        canary.take()
    await canary.close()


async def test_it_runs_and_ends_with_the_block() -> None:
    async with Canary.running() as canary, asyncio.timeout(30):
        while (delay := canary.take()) is None:
            await asyncio.sleep(0.05)
    assert delay >= 0
