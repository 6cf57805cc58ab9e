"""The file stays below its bound, and volumes are sized by a formula that fits what is measured."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from storage.database import Limits
from storage.rows import DecisionRow, PlanRow, SampleRow
from storage.size import SAMPLE_BYTES, volume_bytes, wanted_bytes
from storage.store import Store

MIB = 2**20
QUICK = Limits(flush_seconds=30.0, queue_rows=1_000_000)


def samples(at: float, pods: list[str]) -> list[SampleRow]:
    return [SampleRow(at, "pod", uid, 0.123456 + at, 123456789.0 + at, "prometheus") for uid in pods]


async def test_the_file_stays_below_its_bound_and_the_newest_rows_stay(
    database: Path, decision_row: Callable[..., DecisionRow]
) -> None:
    bound, pods = 8 * MIB, [str(uuid.uuid4()) for _ in range(500)]
    async with await Store.open(database, QUICK) as store:
        store.add_decisions(*(decision_row(number) for number in range(100)))
        largest = 0
        for step in range(400):
            store.add_samples(*samples(float(step), pods))
            if step % 10 == 0:
                assert await store.flush()
                await store.shrink(bound)
                largest = max(largest, size(database))
        await store.flush()
        kept = await store.samples(0.0, "pod")
        assert largest <= bound
        assert kept[-1].at == 399.0
        assert 0 < kept[0].at < 399.0
        assert len(await store.decisions(1000)) == 100, "samples go first"


async def test_without_samples_the_oldest_plans_go(database: Path, plan_row: Callable[..., PlanRow]) -> None:
    async with await Store.open(database, QUICK) as store:
        assert await store.shrink(16 * MIB) == 0
        for number in range(60):
            store.add_plan(replace(plan_row(f"p{number}", float(number)), document="x" * 100_000))
        assert await store.flush()
        assert await store.shrink(4 * MIB) > 0
        kept = [row.id for row in await store.plans(100)]
        assert await store.used_bytes() <= 4 * MIB
        assert kept
        assert kept[0] == "p59"


async def test_the_formula_is_not_below_what_samples_take(database: Path) -> None:
    pods = [str(uuid.uuid4()) for _ in range(1000)]
    async with await Store.open(database, QUICK) as store:
        empty = await store.used_bytes()
        for step in range(40):
            store.add_samples(*samples(1_700_000_000.0 + 15 * step, pods))
        assert await store.flush()
        per_row = (await store.used_bytes() - empty) / 40_000
    assert 0.7 * SAMPLE_BYTES <= per_row <= SAMPLE_BYTES


@pytest.mark.parametrize(("pods", "least", "most"), [(100, 0.1, 0.2), (1_000, 0.2, 0.4), (5_000, 0.8, 1.2)])
def test_volumes_of_clusters(pods: int, least: float, most: float) -> None:
    assert least * 2**30 <= volume_bytes(wanted_bytes(pods, pods // 30)) <= most * 2**30


def test_the_default_fits_the_volume_of_the_chart() -> None:
    assert volume_bytes(800 * MIB) <= 2**30


def size(database: Path) -> int:
    return database.stat().st_size
