"""The dump that the README shows gives the plan that the README shows."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.command import Command

EXAMPLE = Path(__file__).parents[3] / "docs" / "examples" / "overrun.json.gz"


def test_the_example_moves_an_unhappy_pod_off_the_overrun_worker(rematch: Command) -> None:
    result = rematch("plan", "-f", str(EXAMPLE), "-o", "json")
    plan = json.loads(result.out)
    assert result.code == 0
    assert plan["certificate"]["feasible"]
    (move,) = plan["moves"]
    assert move["from"] == "worker-2"
    assert move["pod"] in {unhappy["pod"] for unhappy in plan["unhappy"]}
