"""`rematch plan` with the paper's planner, with dumping, and in the scope affected, as a person sees it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.command import Command
from tests.support.dump import Json, list_of, node, node_metrics, pod, pod_metrics, replica_set, unhealthy


@pytest.fixture
def crowded(tmp_path: Path) -> list[str]:
    """web-1 and db-1 on one node that is too small for the peaks of both; n2 takes neither."""
    things: list[Json] = [
        node("n1"),
        node("n2", cpu="1"),
        pod("web-1"),
        pod("db-1"),
        replica_set("web"),
        replica_set("db"),
        unhealthy("web-1"),
        pod_metrics("web-1", "2"),
        pod_metrics("db-1", "2500m"),
        node_metrics("n1", "3900m"),
        node_metrics("n2", "10m"),
    ]
    path = tmp_path / "dump.json"
    path.write_text(json.dumps(list_of(*things)))
    return ["plan", "-f", str(path)]


def test_a_pod_that_loses_its_node_is_shown(rematch: Command, crowded: list[str]) -> None:
    out = rematch(*crowded, "--planner", "stable-paper").out
    assert "WITHOUT A NODE" in out
    assert "shop/web-1" in out
    assert "dumped: its list ended" in out
    assert "1 without a node, 1 of them lose one" in out
    wide = rematch(*crowded, "--planner", "stable-paper", "-o", "wide").out
    assert "shop/web-1 loses its node n1" in wide


def test_it_is_in_the_public_format(rematch: Command, crowded: list[str]) -> None:
    plan: dict[str, Any] = json.loads(rematch(*crowded, "--planner", "stable-paper", "-o", "json").out)
    assert [(left["pod"], left["from"]) for left in plan["unplaced"]] == [("shop/web-1", "n1")]
    assert plan["after"]["pending"] == 1


def test_no_pod_loses_its_node_by_default(rematch: Command, crowded: list[str]) -> None:
    assert json.loads(rematch(*crowded, "-o", "json").out)["unplaced"] == []
    dumping = json.loads(rematch(*crowded, "--set", "dumping=allow", "-o", "json").out)
    assert [left["pod"] for left in dumping["unplaced"]] == ["shop/web-1"]
    assert dumping["certificate"]["feasible"] is True
    wrong = rematch(*crowded, "--set", "dumping=maybe")
    assert wrong.code != 0
    assert "planner.parameters.dumping: is 'maybe'; it must be never or allow" in wrong.err


def test_all_planners_side_by_side(rematch: Command, crowded: list[str]) -> None:
    out = rematch(*crowded, "--compare").out
    (row,) = [line for line in out.splitlines() if line.startswith("stable-paper")]
    assert "(1 dumped)" in row
    assert "nobodyLeftOut" in row


def test_the_scope_affected_names_pods_without_a_better_node(rematch: Command, crowded: list[str]) -> None:
    out = rematch(*crowded, "--scope", "affected").out
    assert "0 to move" in out
    assert "for 1 of 1 unhappy pod no move that helps was found: shop/web-1" in out
    assert "is not one of 'cluster', 'affected', 'unhappy'" in rematch(*crowded, "--scope", "all").err


def test_a_waived_promise_is_noted_with_the_plan(rematch: Command, crowded: list[str]) -> None:
    assert "note: stable-paper does not promise" in rematch(*crowded, "--planner", "stable-paper").out
    assert "does not promise" not in rematch(*crowded, "--planner", "stable").out
