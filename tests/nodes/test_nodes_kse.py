"""One run of KSE's experiment on a lab of its own: deployed, loaded, balanced and recorded."""

from __future__ import annotations

import pytest

from loadtests.experiments.kse.arms import OURS
from loadtests.experiments.kse.real.bench import RealBench
from loadtests.experiments.kse.real.design import SNAPSHOTS, SUBSET

pytestmark = [pytest.mark.nodes, pytest.mark.timeout(300)]


async def test_ours_balances_the_hot_scenario() -> None:
    hot = next(each for each in SUBSET if each.distribution == "exponential")
    async with RealBench.open(hot.apps()) as bench:
        run = await bench.run(hot, OURS, 1)
    assert len(run.trace) == SNAPSHOTS
    assert run.requests == pytest.approx(6 * hot.target * 10 * SNAPSHOTS, rel=0.02)
    assert run.availability > 99
    assert run.moves > 0
    before, after = (max(nodes) - min(nodes) for nodes in (run.trace[0], run.trace[-1]))
    assert after < before
