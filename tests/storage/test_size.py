"""The file stays below its bound, and volumes are sized by a formula that fits what is measured."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import randbytes

import pytest

from storage.limits import Limits
from storage.place import Place
from storage.rows import ChunkRow, DecisionRow, PlanRow
from storage.size import volume_bytes, wanted_bytes
from storage.store import Store

MIB = 2**20
QUICK = Limits(flush_seconds=30.0, queue_rows=1_000_000)


async def test_the_file_stays_below_its_bound_and_the_newest_rows_stay(
    place: Place, decision_row: Callable[..., DecisionRow], chunk_row: Callable[..., ChunkRow]
) -> None:
    bound = 8 * MIB
    async with await Store.open(place, QUICK) as store:
        store.add_decisions(*(decision_row(number) for number in range(100)))
        largest = 0
        for step in range(400):
            rows = (replace(chunk_row(60 * step, block), document=randbytes(6_000)) for block in range(10))
            store.add_chunks(*rows)
            if step % 10 == 0:
                assert await store.flush()
                await store.shrink(bound)
                largest = max(largest, await store._bytes(store._database.most_bytes))
        await store.flush()
        kept = await store.chunks(60, 0, 60 * 400)
        assert largest <= bound
        assert kept[-1].start == 60 * 399
        assert 0 < kept[0].start < 60 * 399
        assert len(await store.decisions(1000)) == 100, "usage goes first"


async def test_without_usage_the_oldest_plans_go(place: Place, plan_row: Callable[..., PlanRow]) -> None:
    async with await Store.open(place, QUICK) as store:
        assert await store.shrink(16 * MIB) == 0
        for number in range(60):
            store.add_plan(replace(plan_row(f"p{number}", float(number)), document=randbytes(50_000).hex()))
        assert await store.flush()
        assert await store.shrink(4 * MIB) > 0
        kept = [row.id for row in await store.plans(100)]
        assert await store.used_bytes() <= 4 * MIB
        assert kept
        assert kept[0] == "p59"


@pytest.mark.parametrize(("pods", "least", "most"), [(100, 0.1, 0.2), (1_000, 0.3, 0.5), (5_000, 1.0, 1.4)])
def test_volumes_of_clusters(pods: int, least: float, most: float) -> None:
    assert least * 2**30 <= volume_bytes(wanted_bytes(pods, pods // 30)) <= most * 2**30


def test_the_default_fits_the_volume_of_the_chart() -> None:
    assert volume_bytes(800 * MIB) <= 2**30
