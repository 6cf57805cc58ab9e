"""The curve is fitted and what was learned is stored, at intervals and at the end."""

from __future__ import annotations

import asyncio

import numpy as np

from reactor.background.calibrating import FIT_EVERY, Calibrating
from reactor.state.calibration import BINS, COLUMNS, PRIOR
from tests.support.clock import NOW, eventually
from tests.support.rig import Rig


def count(rig: Rig, failures: float) -> None:
    counted = np.zeros((BINS, COLUMNS))
    counted[18] = 1e6, failures, 0.92e6, 0.0
    rig.state.calibration.add(counted, rig.clock.now())


async def test_snapshots_hold_the_curve_that_was_fitted_last() -> None:
    rig = Rig()
    rig.sync()
    calibrating = Calibrating(rig.state, rig.rows.store, rig.clock)
    assert rig.snapshot().failure_curve == PRIOR
    count(rig, 0.4e6)
    assert rig.snapshot().failure_curve == PRIOR
    await calibrating.fit()
    assert abs(rig.snapshot().failure_curve.probability(0.92) - 0.4) < 0.02


async def test_it_is_fitted_and_stored_every_few_minutes_and_stored_at_the_end() -> None:
    rig = Rig()
    rig.sync()
    task = asyncio.create_task(Calibrating(rig.state, rig.rows.store, rig.clock).run())
    await rig.clock.settle()
    count(rig, 0.4e6)
    await eventually(lambda: rig.clock._sleepers)
    assert rig.rows.load_bins == []
    await rig.clock.advance(FIT_EVERY)
    await eventually(lambda: rig.state.calibration.curve != PRIOR)
    assert [(row.bin, round(row.failures)) for row in rig.rows.load_bins] == [(18, 399_931)]
    count(rig, 0.0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert rig.rows.load_bins[-1].probes > 1.9e6
    assert rig.rows.load_bins[-1].at == NOW + FIT_EVERY
