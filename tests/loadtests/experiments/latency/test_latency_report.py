"""The runs of LATENCY's experiment, what is found in their records, and the report."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from loadtests.experiments.latency.design import RANKS, Arm, Trouble, cases, worker_names
from loadtests.experiments.latency.findings import Round, finding, verdicts
from loadtests.experiments.latency.records import (
    MoveSeen,
    PlacementSeen,
    RequestSeen,
    RunRecord,
    record_file,
)
from loadtests.experiments.latency.report import write_report
from reactor.errors import InputError


def record(**changes: object) -> RunRecord:
    """Test 1: the probe tries worker 1 and 2, then both targets move."""
    moves = [
        MoveSeen("a", "probe", 7, 1, 10.0, 13.0, "done"),
        MoveSeen("b", "target", 8, 1, 20.0, 26.0, "done"),
        MoveSeen("b", "probe", 1, 2, 20.0, 23.0, "done"),
        MoveSeen("c", "target", 6, 2, 30.0, 36.0, "done"),
        MoveSeen("d", "probe", 2, 3, 37.0, 38.0, "abandoned"),
        MoveSeen("e", "probe", 2, 4, 70.0, 73.0, "done"),
    ]
    placements = [
        PlacementSeen(0.0, (6, 8), (7,)),
        PlacementSeen(26.0, (1, 6), (2,)),
        PlacementSeen(36.0, (1, 2), (2,)),
    ]
    requests = [RequestSeen(1.0, 8, 1.6, "ok"), RequestSeen(80.0, 1, 0.2, "ok")]
    made = RunRecord(
        arm=Arm.REMATCH,
        test=1,
        targets=2,
        trouble=Trouble.NONE,
        seed=1,
        pace=1.0,
        workers=list(worker_names(1).values()),
        began="2026-01-01T00:00:00+00:00",
        seconds=90.0,
        requests=requests,
        measurements=[],
        placements=placements,
        moves=moves,
        finished=True,
    )
    return msgspec.structs.replace(made, **changes)


def test_names_say_nothing_about_distance_and_every_case_is_run_once() -> None:
    names = worker_names(1)
    assert list(names) == list(RANKS)
    assert sorted(names.values()) != list(names.values())
    keys = [case.key for case in cases(2)]
    assert len(keys) == len(set(keys))
    assert {case.seed for case in cases(2)[: len(keys) // 2]} == {1}, "a seed is whole before the next begins"
    (first,) = cases(5, only_first=True)
    assert (first.start, first.probe, first.best) == ((6, 8), 7, (1, 2))


def test_rounds_end_with_a_quiet_time_and_only_moves_that_took_place_count() -> None:
    found = finding(record())
    assert found.rounds == (Round(3, 2, 2), Round(1, 0, 1))
    assert found.optimal
    assert (found.best_at, found.worse, found.failed) == (36.0, 0, 0)
    assert (found.rtt_first, found.rtt_last) == (1.6, 0.2)


def test_a_target_on_a_farther_worker_is_found_unless_that_worker_came_nearer() -> None:
    away = [MoveSeen("a", "target", 2, 8, 50.0, 55.0, "done")]
    assert finding(record(moves=away)).worse == 1
    assert finding(record(test=3, moves=away, changed_at=40.0)).worse == 0


def test_the_change_is_followed_when_the_placement_is_best_again() -> None:
    placements = [*record().placements, PlacementSeen(75.0, (1, 8), (3,))]
    found = finding(record(test=3, placements=placements, changed_at=60.0))
    assert found.followed_after == 15.0
    assert found.optimal
    assert not finding(record(test=3, changed_at=60.0)).optimal


def test_verdicts_count_what_was_run_and_name_what_was_not() -> None:
    silent = record(trouble=Trouble.SILENCE, silent=(18.0, 60.0))
    found = {each.goal: each for each in verdicts([finding(record()), finding(silent)])}
    assert [each.reached for each in found.values()].count("reached") == 5
    quiet = next(each for goal, each in found.items() if "silent" in goal)
    assert (quiet.measured, quiet.reached) == ("0 of 1 runs", "not reached")
    assert [each.measured for each in found.values()].count("not run") == 2


def test_a_report_of_what_was_measured_so_far(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nothing was measured"):
        write_report(tmp_path, [], partial=True)
    path = tmp_path / "runs.jsonl"
    record_file(path).add(record())
    path.write_bytes(path.read_bytes() + b"{cut off")
    page = write_report(tmp_path, record_file(path).read(), partial=True).read_text()
    assert "Partial" in page
    assert "3, 2, 2; 1, 0, 1" in page
    assert len((tmp_path / "moves.csv").read_text().splitlines()) == 7
    assert json.loads((tmp_path / "summary.json").read_text())["runs"][0]["optimal"] is True
