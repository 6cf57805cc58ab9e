"""The short form of `make chaos`: faults from one seed against two controllers on a real control plane."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from loadtests.chaos.__main__ import Request, run
from loadtests.chaos.faults import FaultKind

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]
FAULTS = 150


async def test_what_must_hold_holds_through_150_faults(tmp_path: Path) -> None:
    request = Request(1, FAULTS, None, frozenset(), minimum=0, kills=0, controllers=2, folder=tmp_path, report=None)
    results = await run(request)
    failed = {result.plan.seed: result.violations for result in results if result.violations}
    assert failed == {}, f"again: make chaos SEED={next(iter(failed))} ROUNDS=1"
    injected: Counter[FaultKind] = sum((result.injected for result in results), Counter())
    assert injected.total() >= FAULTS
    assert len(injected) >= len(FaultKind) - 5
