"""The evaluation on excerpts of real series: cuts, measures, coverage, report."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from loadtests.forecasting import evaluation, measures, walk
from loadtests.forecasting.coverage import walk_all
from loadtests.forecasting.evaluation import SELECTED, evaluate
from loadtests.forecasting.measures import at_equal_slack, coverage_of, geometric_mean, relative_errors
from loadtests.forecasting.report import markdown, write_files
from loadtests.forecasting.series_sets import SETS, Recording, SeriesSet, before_the_cut, read_recordings
from predictors.peaks import SigmaOrPercentile

DATA = Path(__file__).parents[2] / "data" / "forecasting"
AZURE, _, _, PODS = SETS


def test_series_of_one_time_are_cut_at_one_instant() -> None:
    (recording,) = read_recordings(DATA, PODS)
    assert recording.values.shape == (8, 1209)
    assert recording.cut == int(0.7 * 1209)
    assert np.nanmax(recording.values[:, : recording.cut], axis=1) == pytest.approx(np.ones(8))
    assert set(recording.chosen_on().tolist()) == {True, False}


def test_training_histories_end_together() -> None:
    long = Recording(("a",), np.arange(10, dtype=np.float32)[np.newaxis], 60.0, 7)
    short = Recording(("b",), np.arange(10, dtype=np.float32)[np.newaxis], 60.0, 3)
    both = before_the_cut([long, short]).values
    assert both[:, -1].tolist() == [6, 2]
    assert np.isnan(both[1, :4]).all()
    assert long.coarser(120.0).values.tolist() == [[0.5, 2.5, 4.5, 6.5, 8.5]]


@pytest.mark.parametrize("which", [AZURE, PODS], ids=lambda each: each.name)
def test_a_promised_bound_holds_on_real_series(which: SeriesSet) -> None:
    held, slack = [], []
    for recording in read_recordings(DATA, which):
        walked = walk_all(recording, [SigmaOrPercentile()])
        for row in range(len(recording.names)):
            known = walked.calibrated[:, row] & np.isfinite(walked.came[:, row])
            slack.append(walked.bounds[known, row] - walked.came[known, row])
            held.append((slack[-1] >= 0).astype(np.float64))
    found = coverage_of(held, slack, 0.95)
    # A few series from a model that was never trained: `python -m loadtests.forecasting` measures the bars.
    assert found.mean == pytest.approx(0.95, abs=0.03)
    assert found.slack < 0.3


def test_errors_are_shares_of_the_last_values() -> None:
    actual = np.random.default_rng(1).normal(size=(150, 3, 2))
    errors = relative_errors(actual + 0.5, actual + 1.0, actual)
    assert geometric_mean(errors) == pytest.approx([0.5, 0.5])
    assert np.isnan(relative_errors(actual[:50], actual[:50] + 1, actual[:50])).all()


def test_a_sharper_estimator_misses_less_at_equal_slack() -> None:
    draw = np.random.default_rng(2)
    came = draw.uniform(0, 1, (300, 20))
    now = np.zeros_like(came)
    sharp, blunt = came + draw.normal(0.02, 0.05, came.shape), np.full_like(came, 0.6)
    assert at_equal_slack(blunt, sharp, now, came).not_worse()
    assert not at_equal_slack(sharp, blunt, now, came).not_worse()
    row = at_equal_slack(blunt, sharp, now, came)
    assert row.ours_slack == pytest.approx(row.slack, abs=1e-6)


def test_a_set_is_evaluated_and_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluation, "TRAINING_SECONDS", 1.0)
    monkeypatch.setattr(walk, "ORIGINS", 40)
    monkeypatch.setattr(measures, "FEWEST_ORIGINS", 20)
    found = evaluate(PODS, {PODS.name: read_recordings(DATA, PODS)}, refitted=True)
    assert found.errors["last-value"] == (1.0, 1.0)
    assert max(found.errors[SELECTED]) < 1.0
    write_files(tmp_path, [found], None)
    assert {each.name for each in tmp_path.iterdir()} == {"forecasts.json", "forecasts.csv", "forecasts.html"}
    assert "k8s pods" in markdown([found], None)
