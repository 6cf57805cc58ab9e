"""BNIP's tests on real nodes: what is run, and what the report makes of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from loadtests.experiments.bnip.design import DEMANDS
from loadtests.experiments.bnip.live.design import (
    CAREFUL,
    LOADS,
    NODES,
    PAPER_USERS,
    PLACED_BY,
    PLAIN,
    Change,
    concurrency_runs,
    update_runs,
    web_app,
)
from loadtests.experiments.bnip.live.records import UpdateRun, UsersRun
from loadtests.experiments.bnip.live.report import Live
from loadtests.nodes.apps import deployment
from loadtests.nodes.spec import SYSTEM_MEMORY_MIB
from loadtests.report_page import ReportPage

NOW = "2026-01-01T00:00:00+00:00"


def update(change: Change, lost: int, repeat: int = 1) -> UpdateRun:
    load = LOADS[0]
    failed = {"refused": lost} if lost else {}
    return UpdateRun(
        change, load.rate, load.connections, repeat, 500.0, 30_000, failed, 0.1, 0.0, 8.0, True, {}, [], NOW
    )  # fmt: skip


def users(arm: str, repeat: int, level: int, mean: float, failed: int = 0) -> UsersRun:
    return UsersRun(arm, repeat, level, level // 20, 1000, {"timeout": failed}, mean, 2 * mean, {}, NOW)


def test_every_repeat_has_all_cases_and_the_order_of_the_placements_changes() -> None:
    assert len(update_runs(2)) == 2 * len(LOADS) * len(Change)
    first, second = (
        [arm.name for arm, each in concurrency_runs(2) if each == repeat] for repeat in (1, 2)
    )  # fmt: skip
    assert first == second[::-1] == [arm.name for arm in PLACED_BY]


def test_nodes_and_pods_are_scaled_alike() -> None:
    assert [node.millicores for node in NODES] == [200, 400, 800]
    assert [node.memory_mib - SYSTEM_MEMORY_MIB - node.eviction_mib for node in NODES] == [400, 400, 800]
    bodies = [int(web_app(pod).environment["BODY_BYTES"]) for pod in DEMANDS]
    assert [each / bodies[0] for each in bodies] == [rate / DEMANDS["pod1"] for rate in DEMANDS.values()]


def test_plain_pods_have_none_of_the_ingredients() -> None:
    def container(change: Change) -> dict[str, Any]:
        (app,) = (each.app for each in (PLAIN, CAREFUL) if each.app.name == change.app)
        found: dict[str, Any] = deployment(app, "default")["spec"]["template"]["spec"]["containers"][0]
        return found

    assert not {"readinessProbe", "lifecycle"} & set(container(Change.PLAIN_UPDATE))
    assert {"readinessProbe", "lifecycle"} <= set(container(Change.UPDATE))


def test_lost_requests_are_added_up_over_the_runs() -> None:
    live = Live([update(Change.PLAIN_UPDATE, 60), update(Change.PLAIN_UPDATE, 0, 2), update(Change.MOVE, 0)], [])
    arms: Any = live.summary()["updates"]
    assert arms["arms"][Change.PLAIN_UPDATE] == {
        "runs": 2,
        "loads": ["500/s, new connections"],
        "requests": 60_000,
        "lost": 60,
        "lostPercent": 0.1,
    }
    assert arms["arms"][Change.MOVE]["lost"] == 0


def test_placements_are_compared_repeat_by_repeat() -> None:
    default, extender = (arm.name for arm in PLACED_BY)
    runs = [
        run
        for repeat, faster in ((1, 0.9), (2, 0.8))
        for level in PAPER_USERS
        for run in (users(default, repeat, level, 100.0, 10), users(extender, repeat, level, 100.0 * faster, 5))
    ]
    found: Any = Live([], runs).summary()["concurrency"]
    assert (found["requestTime"]["mean"], found["requestTime"]["repeats"]) == (pytest.approx(-15.0), 2)
    assert found["failures"]["mean"] == pytest.approx(-50.0)
    alone: Any = Live([], runs[: 2 * len(PAPER_USERS)]).summary()["concurrency"]
    assert (alone["requestTime"]["mean"], alone["requestTime"]["high"]) == (pytest.approx(-10.0), None)


def test_a_report_of_a_part_says_what_was_not_run(tmp_path: Path) -> None:
    page = ReportPage("BNIP")
    live = Live([update(Change.PLAIN_UPDATE, 60)], [])
    live.add_to(page)
    live.write_csv(tmp_path)
    text = page.html()
    assert "plain rolling update" in text
    assert "Not run: it needs real nodes" in text
    assert (tmp_path / "updates.csv").read_text().count("\n") == 2
    assert "refused=60" in (tmp_path / "updates.csv").read_text()
