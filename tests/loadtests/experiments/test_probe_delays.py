"""The table of docs/causes.md in small: a starved pod moves soon, healthy ones stay."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from loadtests.experiments.probe_delays.healthy import failures_of_a_day, needless_moves
from loadtests.experiments.probe_delays.main import ACT
from loadtests.experiments.probe_delays.starved import starve
from reactor.settings.model import Settings
from storage.limits import Limits
from storage.store import Store

SETTINGS = Settings.model_validate(ACT)


@pytest.mark.parametrize("rate", [0.001, 0.01])
def test_as_many_probes_fail_as_asked_and_some_in_bursts(rate: float) -> None:
    draw = np.random.default_rng(1)
    days = [failures_of_a_day(1.0, rate, draw) for _ in range(30)]

    assert sum(map(len, days)) / (30 * 86400) == pytest.approx(rate, rel=0.1)
    in_a_row = sum(int((np.diff(day) == 1).sum()) for day in days)
    assert in_a_row > 2 * sum(len(day) ** 2 for day in days) / 86400


def test_failures_by_chance_move_no_pod_from_a_node_with_room() -> None:
    found = needless_moves(10, 0.01, 20, 1, SETTINGS, (0.5, 0.8, 1.0))

    assert (found.moves[0.5], found.moves[0.8]) == (0, 0)
    assert found.moves[1.0] > 0


async def test_with_the_default_probe_a_starved_pod_moves_before_the_second_kill(tmp_path: Path) -> None:
    async with await Store.open(tmp_path / "rows.db", Limits(flush_seconds=3600.0)) as store:
        found = await starve(1, 10, store, SETTINGS)

    assert found.move is not None
    assert found.move <= 30.0
    assert found.second_kill is None
