"""The figures of BNIP's test and its report."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from loadtests.experiments.bnip.design import (
    ARMS,
    PAPER_BNIP,
    PAPER_DEFAULT,
    best_of_all,
    groups,
    placed_by,
    runs,
    steps_of,
    use_of,
)
from loadtests.experiments.bnip.live.report import Live
from loadtests.experiments.bnip.report import RunRecord, write_report
from reactor.errors import InputError

NOT_LIVE = Live([], [])


def test_the_figures_that_the_nominal_demands_give() -> None:
    found = [use_of(each).variance for each in (PAPER_DEFAULT, PAPER_BNIP, placed_by("network", {}, {}), best_of_all())]
    assert [round(value, 2) for value in found] == [181.40, 14.89, 7.60, 0.14]
    balanced = placed_by("balance", {"weights": {"network": 1.0}, "confidence": 0.0}, PAPER_DEFAULT)
    assert round(use_of(balanced).variance, 2) == 0.14
    assert groups(PAPER_BNIP) == "node1 {2, 6}, node2 {3, 5, 8}, node3 {1, 4, 7, 9}"


def test_after_the_last_deployment_the_figures_are_those_of_the_placement() -> None:
    assert steps_of(PAPER_BNIP)[-1] == use_of(PAPER_BNIP)
    assert len(steps_of(PAPER_BNIP)) == 9


def test_a_report_of_what_was_measured_so_far(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nothing was measured"):
        write_report(tmp_path, [], NOT_LIVE, partial=True)
    arm, repeat = runs(1)[-1]
    record = RunRecord(arm.name, arm.weight, repeat, dict(PAPER_BNIP), "2026-01-01T00:00:00+00:00", 4.0, 8.0)
    page = write_report(tmp_path, [record], NOT_LIVE, partial=True).read_text()
    assert "Partial" in page
    assert "at most 8 ms" in page
    assert "181.40" in page
    rows = (tmp_path / "steps.csv").read_text().splitlines()
    assert (len(rows), rows[-1].split(",")[-1]) == (10, "14.8899")
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert list(summary["arms"]) == [ARMS[-1].name]
