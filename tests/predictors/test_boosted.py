"""The boosted models: better than the last value where there is something to learn, silent outside what they saw."""

from __future__ import annotations

import numpy as np
import pytest

from predictors.boosted import BoostedValue
from predictors.protocol import History, NotEnoughHistory, Target
from predictors.testing import random_load
from predictors.training_rows import draw_examples, outcomes

MINUTES = (75.0,)


@pytest.fixture(scope="module")
def trained() -> BoostedValue:
    values = random_load(np.random.default_rng(1), 40, 600).astype(np.float32)
    return BoostedValue().fit(History(values, 300.0), MINUTES, 5.0)


def test_it_beats_the_last_value_on_series_it_has_not_seen(trained: BoostedValue) -> None:
    values = random_load(np.random.default_rng(2), 40, 615).astype(np.float32)
    predicted = trained.predict(History(values[:, :600], 300.0), MINUTES)[:, 0]
    actual, last = values[:, 614].astype(np.float64), values[:, 599].astype(np.float64)
    known = np.isfinite(predicted) & np.isfinite(actual) & (last != actual)
    share = np.abs(predicted - actual)[known] / np.abs(last - actual)[known]
    assert known.sum() > 20
    assert np.exp(np.log(np.maximum(share, 1e-6)).mean()) < 0.9


def test_outside_what_it_has_seen_it_has_no_answer(trained: BoostedValue) -> None:
    usual = random_load(np.random.default_rng(3), 9, 400)[1::4]
    jump, gap, young = usual[:1].copy(), usual[:1].copy(), usual[:1].copy()
    jump[:, -1] *= 1e6
    gap[:, -1] = np.nan
    young[:, :-2] = np.nan
    for values in (jump, gap, young):
        assert np.isnan(trained.predict(History(values.astype(np.float32), 300.0), MINUTES)).all()


def test_the_same_history_gives_the_same_model() -> None:
    history = History(random_load(np.random.default_rng(4), 10).astype(np.float32), 300.0)
    unhurried = 600.0  # the time that training may take decides how many trees there are
    one, other = (
        BoostedValue(examples=2000).fit(history, MINUTES, unhurried).predict(history, MINUTES) for _ in range(2)
    )
    assert np.array_equal(one, other, equal_nan=True)


def test_cut_demand_is_not_learned_as_truth() -> None:
    values = np.arange(20, dtype=np.float32)[np.newaxis]
    cut = np.zeros(values.shape, dtype=bool)
    cut[0, 10] = True
    peaks = outcomes(History(values, 300.0, cut), 3, Target.PEAK)[0]
    assert np.flatnonzero(np.isnan(peaks)).tolist() == [7, 8, 9, 17, 18, 19]
    assert peaks[0] == 3


def test_examples_to_stop_by_come_after_those_to_learn_from() -> None:
    rising = np.linspace(1, 2, 2000, dtype=np.float32) + np.random.default_rng(5).normal(0, 0.01, (5, 2000))
    learned, later = draw_examples(History(rising.astype(np.float32), 300.0), 15, Target.VALUE, 1000)
    level = -1  # the last feature is the level
    assert later.matrix[:, level].mean() > learned.matrix[:, level].mean()


def test_too_little_is_not_learned_from() -> None:
    with pytest.raises(NotEnoughHistory):
        BoostedValue().fit(History(np.ones((50, 10), dtype=np.float32), 300.0), MINUTES, 5.0)
