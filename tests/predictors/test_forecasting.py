"""The automatic selection: follows the better model, keeps the promise of its bounds, says what it does not know."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray

from predictors.calibration import ENOUGH
from predictors.forecasting import Forecasting, OtherState, Outlook
from predictors.last_value import LastValue
from predictors.peaks import SigmaOrPercentile
from predictors.protocol import Floats, History, Predictor, Target
from predictors.smoothing import Smoothing

STEP = 60.0
MINUTES = (1.0, 15.0)


def walk(
    values: NDArray[np.floating],
    models: Sequence[Predictor],
    peaks: Sequence[Predictor],
    cut: NDArray[np.bool_] | None = None,
) -> list[Outlook]:
    forecasting = Forecasting(models, peaks, MINUTES)
    keys = [f"pod-{row}" for row in range(len(values))]
    history = History(values.astype(np.float32), STEP, cut)
    return [
        forecasting.advance(keys, history.until(columns), columns * STEP) for columns in range(1, values.shape[1] + 1)
    ]


@dataclass(frozen=True)
class Fixed:
    """Says what it is told for each series, on either target."""

    answers: tuple[float, ...]
    target: Target = Target.VALUE
    name: str = "fixed"

    def predict(self, history: History, minutes: Sequence[float]) -> Floats:
        return np.repeat(np.array(self.answers)[: len(history.values), np.newaxis], len(minutes), axis=1)


def test_each_series_follows_the_model_that_errs_least() -> None:
    draw = np.random.default_rng(1)
    noise = draw.normal(10, 1, (1, 200))
    walked = np.cumsum(draw.normal(0, 1, (1, 200)), axis=1) + 100
    last = walk(np.concatenate([noise, walked]), [LastValue(), Smoothing()], [SigmaOrPercentile()])[-1]
    assert last.models[0].tolist() == [1, 1]
    assert last.values[0] == pytest.approx([10, 10], abs=0.7)
    assert last.values[1] == pytest.approx(walked[0, -1], abs=2.0)


def test_a_model_without_an_answer_is_left_out() -> None:
    first = walk(np.ones((2, 3)), [LastValue(), Fixed((np.nan, 1.0))], [SigmaOrPercentile()])[0]
    assert np.isfinite(first.values).all()
    assert first.models[0].tolist() == [0, 0]


def test_nothing_known_is_no_forecast() -> None:
    last = walk(np.full((1, 5), np.nan), [LastValue(), Smoothing()], [SigmaOrPercentile()])[-1]
    assert np.isnan(last.values).all()
    assert np.isnan(last.peaks).all()
    assert not last.calibrated.any()


def test_a_cold_start_has_a_peak_that_is_marked_uncalibrated() -> None:
    outlooks = walk(np.linspace(1, 2, 230)[np.newaxis], [LastValue()], [Fixed((np.nan,)), SigmaOrPercentile()])
    assert np.isfinite(outlooks[0].peaks).all()
    assert [int(each.calibrated[0, 0]) for each in outlooks].index(1) == ENOUGH


@pytest.mark.parametrize("bias", [-1.0, 0.0, 3.0])
def test_bounds_hold_as_often_as_promised_whatever_the_model_says(bias: float) -> None:
    draw = np.random.default_rng(2)
    values = draw.gamma(2.0, 1.0, (20, 1500)) + 5
    outlooks = walk(values, [LastValue()], [Fixed((8.0 + bias,) * 20, Target.PEAK)])
    peaks = np.stack([each.peaks[:, 1] for each in outlooks])[500:-15]
    came = np.stack([values[:, at : at + 15].max(axis=1) for at in range(501, 1486)])
    held = (came <= peaks).mean(axis=0)
    assert held.mean() == pytest.approx(0.95, abs=0.02)
    assert (np.abs(held - 0.95) <= 0.03).mean() >= 0.8


def test_cut_demand_is_no_evidence_that_a_bound_was_high_enough() -> None:
    values = np.full((2, 300), 1.0)
    cut = np.zeros(values.shape, dtype=bool)
    cut[1] = True
    free, throttled = walk(values, [LastValue()], [Fixed((2.0, 2.0), Target.PEAK)], cut)[-1].peaks
    assert free[1] < 2.0
    assert throttled[1] == 2.0
    assert walk(values, [LastValue()], [SigmaOrPercentile()], cut)[-1].at_least.tolist() == [False, True]


def test_what_is_known_of_a_series_follows_it_when_others_come_and_go() -> None:
    draw = np.random.default_rng(3)
    values = draw.gamma(2.0, 1.0, (2, 240)).astype(np.float32)
    forecasting = Forecasting([LastValue(), Smoothing()], [SigmaOrPercentile()], MINUTES)
    for columns in range(1, 240):
        forecasting.advance(["a", "b"], History(values[:, :columns], STEP), columns * STEP)
    offset = forecasting.calibration.offset
    young = np.full((1, 240), np.nan, dtype=np.float32)
    young[:, -1] = 1.0
    after = forecasting.advance(["new", "b"], History(np.concatenate([young, values[1:]]), STEP), 240 * STEP)
    assert after.calibrated[:, 0].tolist() == [False, True]
    assert forecasting.calibration.offset[1] == pytest.approx(offset[1], abs=0.2)


def test_what_was_learned_survives_a_restart() -> None:
    values = np.random.default_rng(4).gamma(2.0, 1.0, (2, 240)).astype(np.float32)
    before, after = (Forecasting([LastValue(), Smoothing()], [SigmaOrPercentile()], MINUTES) for _ in range(2))
    for columns in range(1, 240):
        before.advance(["a", "b"], History(values[:, :columns], STEP), columns * STEP)
    after.restore(before.state())
    one, other = (each.advance(["b", "a"], History(values[::-1], STEP), 240 * STEP) for each in (before, after))
    assert other.calibrated.all()
    assert other.values == pytest.approx(one.values, rel=0.05)
    assert other.peaks == pytest.approx(one.peaks, rel=0.05)
    with pytest.raises(OtherState):
        Forecasting([LastValue()], [SigmaOrPercentile()], MINUTES).restore(before.state())
    with pytest.raises(OtherState):
        after.restore({})


def test_a_gap_in_time_resolves_nothing_wrongly() -> None:
    forecasting = Forecasting([LastValue()], [SigmaOrPercentile()], MINUTES)
    values = np.ones((1, 5), dtype=np.float32)
    forecasting.advance(["a"], History(values, STEP), 0.0)
    forecasting.advance(["a"], History(values, STEP), 10_000 * STEP)
    assert forecasting.selection.numbers.sum() == 0
    assert forecasting.calibration.resolved.sum() == 0
