"""KSE's experiment: its scenarios, the rule by which it is judged, what is kept of an interrupted one, the report."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from loadtests.experiments.kse.arms import ARMS, GREEDY, NONE, OURS, REFINE
from loadtests.experiments.kse.design import FIRST_ACTION, FUTURE_WORK, INTERVAL, NODES, SECONDS, Scenario, scenarios
from loadtests.experiments.kse.judging import Change, Measured, changes, count, judge, measured, recorded
from loadtests.experiments.kse.main import KseOptions, main
from loadtests.experiments.kse.report import write_report
from loadtests.experiments.kse.results import About, Run, model_digest
from loadtests.experiments.kse.runner import Task, tasks
from loadtests.experiments.kse.runner import _run as run_here
from reactor.errors import InputError

HOT = Scenario("synthetic", 20, 20, "constant", "exponential", "cpu")


def made(scenario: str, arm: str, seed: int, imbalance: float, moves: int = 0, availability: float = 100.0) -> Run:
    trace = [[imbalance, 0.0, 0.0, 0.0]] * 12
    return Run(scenario, arm, seed, imbalance, imbalance / 4, moves, 0, availability, 130.0, 0, trace)


def test_there_are_two_times_32_scenarios_with_recorded_results() -> None:
    names = [each.name for each in scenarios()]
    assert len(set(names)) == 64
    assert {name for name, _ in recorded()} == set(names)
    assert all((name, arm) in recorded() for name in names for arm in (NONE, GREEDY, REFINE))


@pytest.mark.parametrize("scenario", [*scenarios(), *FUTURE_WORK], ids=lambda each: each.name)
def test_requests_are_spread_over_all_pods_and_pods_evenly_over_the_nodes(scenario: Scenario) -> None:
    shares = scenario.shares()
    assert sum(shares) == pytest.approx(1.0)
    assert min(shares) > 0
    busiest = shares.index(max(shares))
    assert busiest == 0 if scenario.distribution == "exponential" else busiest >= scenario.pods // 2
    placed = Counter(scenario.placement().values())
    assert set(placed) == set(NODES)
    assert max(placed.values()) - min(placed.values()) <= 1


def test_the_rule_gives_the_known_counts_on_the_recorded_runs() -> None:
    better = {
        (workload, arm): count(changes(recorded(), arm, workload), Change.BETTER)
        for workload in ("synthetic", "realistic")
        for arm in (GREEDY, REFINE)
    }
    assert list(better.values()) == [6, 10, 9, 8]


@pytest.mark.parametrize(
    ("mean", "spread", "change"), [(70, 9, Change.BETTER), (70, 11, Change.SAME), (130, 9, Change.WORSE)]
)
def test_better_and_worse_need_intervals_that_do_not_overlap(mean: float, spread: float, change: Change) -> None:
    nothing = Measured(100.0, 20.0, 0.0, 100.0, 0.0, 3)
    assert Measured(mean, spread, 0.0, 100.0, 0.0, 3).compared_with(nothing) is change


def test_the_goal_is_judged_only_when_everything_was_run_more_than_once() -> None:
    def runs(repeats: int, ours_moves: int = 2) -> list[Run]:
        values = {
            NONE: (100.0, 0),
            GREEDY: (60.0, 90),
            REFINE: (70.0, 8),
            "balance": (50.0, 3),
            OURS: (50.0, ours_moves),
        }
        return [
            made(each.name, arm, seed, values[arm][0] + seed, values[arm][1])
            for each in scenarios()
            for arm in ARMS
            for seed in range(repeats)
        ]

    assert [each.text for each in judge(measured(runs(1)))] == ["cannot be judged"] * 4
    assert [each.text for each in judge(measured(runs(2)))] == ["reached"] * 4
    assert [each.text for each in judge(measured(runs(2, ours_moves=9)))][2] == "not reached"
    partly = [run for run in runs(2) if run.scenario != HOT.name]
    assert {each.text for each in judge(measured(partly))} == {"cannot be judged"}


def test_all_scenarios_of_a_repeat_come_before_the_next_repeat() -> None:
    found = tasks([HOT, FUTURE_WORK[0]], [NONE, OURS], 2)
    assert [task.seed for task in found] == [1] * 4 + [2] * 4
    assert len({task.key for task in found}) == 8


def test_refine_and_ours_balance_the_hot_scenario_and_ours_loses_no_request() -> None:
    none, refine, ours = (run_here(Task(HOT, arm, 1)) for arm in (NONE, REFINE, OURS))
    assert none.moves == 0
    assert none.imbalance == pytest.approx(recorded()[HOT.name, NONE].imbalance, rel=0.25)
    assert none.node_mean == pytest.approx(674, rel=0.05)
    for arm in (refine, ours):
        assert 0 < arm.moves < 40
        assert arm.imbalance < 0.6 * none.imbalance
    assert refine.availability < 100.0 <= ours.availability
    assert len(none.trace) == 12


def test_greedy_moves_half_of_the_pods_every_minute_also_those_that_came_a_minute_ago() -> None:
    greedy = run_here(Task(HOT, GREEDY, 1))
    plans = (SECONDS - FIRST_ACTION) / INTERVAL
    assert greedy.moves > plans * HOT.pods / 2
    assert greedy.returns > 0.5 * greedy.moves


def test_the_report_of_a_part_is_written_and_says_what_cannot_be_judged(tmp_path: Path) -> None:
    runs = [made(HOT.name, arm, seed, 400.0 - 50 * seed) for arm in ARMS for seed in (1, 2)]
    page = write_report(tmp_path, runs, About("m", "0.1.0", "3.11", "2 cores"))
    assert "cannot be judged" in page.read_text()
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary["repeats"] == 2
    assert (tmp_path / "runs.csv").read_text().count("\n") == 11
    assert "recorded" in (tmp_path / "scenarios.csv").read_text()


def test_runs_of_another_model_are_not_mixed_in(tmp_path: Path) -> None:
    About("other", "0.1.0", "3.11", "2 cores").write(tmp_path / "about.json")
    with pytest.raises(InputError, match="another version of the model"):
        main(KseOptions(1, 1, True, tmp_path, None, ("leak",)))
    with pytest.raises(InputError, match="no scenario's name has nothing"):
        main(KseOptions(1, 1, True, tmp_path, None, ("nothing",)))
    assert len(model_digest()) == 12
