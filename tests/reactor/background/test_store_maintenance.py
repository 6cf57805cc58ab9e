"""The store follows the state; measurements reach both."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from reactor.background.store_maintenance import StoreMaintenance
from reactor.decision.decide import Trigger
from storage.store import Store
from tests.support.cluster import make_event, make_node, make_pod
from tests.support.rig import Rig


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    async with await Store.open(tmp_path / "rematch.db") as opened:
        yield opened


@pytest.fixture
def rig() -> Rig:
    rig = Rig()
    rig.sync(make_pod("web-1"), make_pod("db-1"), make_node())
    return rig


def value(rig: Rig, name: str, **labels: str) -> float | None:
    return rig.instruments.registry.get_sample_value(name, labels)


async def test_failures_are_stored_soon_and_everything_at_the_end(rig: Rig, store: Store) -> None:
    maintenance = StoreMaintenance(rig.state, store, rig.recorder, lambda: rig.settings, rig.clock, rig.instruments)
    task = asyncio.create_task(maintenance.run())
    rig.fail(make_pod("web-1"), 7)

    await rig.clock.advance(5)
    await store.flush()
    assert [row.name for row in await store.happiness()] == ["web-1"]

    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await store.flush()
    rows = {row.name: row.failures for row in await store.happiness()}
    assert rows["web-1"] == pytest.approx(7, rel=0.05)
    assert rows["db-1"] == 0


async def test_what_is_stored_restores_the_same_counts(rig: Rig, store: Store) -> None:
    pod = make_pod("web-1")
    rig.fail(pod, 7)
    maintenance = StoreMaintenance(rig.state, store, rig.recorder, lambda: rig.settings, rig.clock, rig.instruments)
    task = asyncio.create_task(maintenance.run())
    await rig.clock.settle()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await store.flush()
    before = rig.state.probes.counts(pod.uid, rig.clock.now())

    rig.restart()
    rig.state.restore(await store.happiness())
    rig.sync(pod, make_event(pod, 7))

    after = rig.state.probes.counts(pod.uid, rig.clock.now())
    assert after.failures == pytest.approx(before.failures)
    assert after.successes == pytest.approx(before.successes)


async def test_the_state_shows_in_metrics_from_the_start(rig: Rig, store: Store) -> None:
    maintenance = StoreMaintenance(rig.state, store, rig.recorder, lambda: rig.settings, rig.clock, rig.instruments)
    task = asyncio.create_task(maintenance.run())
    await rig.clock.settle()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

    assert value(rig, "rematch_synced") == 1
    assert value(rig, "rematch_storage_ok") == 1
    assert value(rig, "rematch_objects", kind="pods") == 2
    assert value(rig, "rematch_objects", kind="jobs") == 0


async def test_problems_are_written_after_the_cycle_that_planned(rig: Rig, store: Store) -> None:
    maintenance = StoreMaintenance(rig.state, store, rig.recorder, lambda: rig.settings, rig.clock, rig.instruments)
    outcome = await rig.run_cycle(Trigger.DEMAND)
    assert outcome.rematch is not None
    assert rig.rows.problems == []

    task = asyncio.create_task(maintenance.run())
    await rig.clock.settle()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert [row.plan_id for row in rig.rows.problems] == [outcome.rematch.plan_id]
