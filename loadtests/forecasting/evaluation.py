"""One set of series: models are trained, walked through the time after the cut, and measured on the reported half."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from loadtests.forecasting.coverage import walk_all
from loadtests.forecasting.measures import (
    Coverage,
    PeakRow,
    at_equal_slack,
    coverage_of,
    geometric_mean,
    relative_errors,
)
from loadtests.forecasting.series_sets import SETS, Recording, SeriesSet, before_the_cut
from loadtests.forecasting.walk import Floats, Walked, minutes_of, walk
from predictors.boosted import BoostedValue
from predictors.boosted_peak import BoostedPeak
from predictors.calibration import PROMISE
from predictors.last_value import LastValue
from predictors.peaks import SigmaOrPercentile
from predictors.protocol import Predictor
from predictors.ridge import Ridge
from predictors.seasonal import Seasonal
from predictors.smoothing import Smoothing

TRAINING_SECONDS = 25.0
"""For each of the two models; together with drawing the examples less than a minute."""
SELECTED = "selected"

Recordings = Mapping[str, Sequence[Recording]]


@dataclass(frozen=True, slots=True)
class Evaluation:
    series_set: str
    refitted: bool
    """Whether the models were trained on the time before the cut of this set, or on the other sets only."""
    training_seconds: float
    errors: dict[str, tuple[float, ...]]
    """By model, per horizon: the geometric mean of the relative errors."""
    series: dict[str, list[list[float]]]
    """By model, per series."""
    peaks: dict[str, PeakRow]
    coverage: Coverage | None


def evaluate(which: SeriesSet, recordings: Recordings, *, refitted: bool) -> Evaluation:
    started = time.process_time()
    value, peak = _trained(which, recordings, refitted=refitted)
    took = time.process_time() - started
    models: list[Predictor] = [LastValue(), Smoothing(), Seasonal(), Ridge(), value]
    peaks: list[Predictor] = [peak, SigmaOrPercentile()]
    walked = [walk(each, models, peaks) for each in recordings[which.name]]
    names = [model.name for model in models]
    series = {name: _reported(recordings[which.name], walked, at) for at, name in enumerate((*names, SELECTED))}
    return Evaluation(
        which.name,
        refitted,
        took,
        {name: tuple(geometric_mean(errors).tolist()) for name, errors in series.items()},
        {name: errors.tolist() for name, errors in series.items()},
        _peak_rows(recordings[which.name], walked),
        None if refitted else _coverage(recordings[which.name], peaks),
    )


def _trained(which: SeriesSet, recordings: Recordings, *, refitted: bool) -> tuple[BoostedValue, BoostedPeak]:
    history = before_the_cut(recordings[which.name] if refitted else _others(which, recordings))
    minutes = minutes_of(which.step)
    value = BoostedValue().fit(history, minutes, TRAINING_SECONDS)
    return value, BoostedPeak().fit(history, minutes[-1:], TRAINING_SECONDS)


def _others(which: SeriesSet, recordings: Recordings) -> list[Recording]:
    """The other sets, at the step of this one. Longer steps cannot be made shorter: they are taken as they are, since
    the models see steps and not minutes."""
    return [
        each.coarser(which.step) if each.step < which.step else replace(each, step=which.step)
        for other in SETS
        if other.name != which.name
        for each in recordings[other.name]
    ]


def _reported(recordings: Sequence[Recording], walked: Sequence[Walked], model: int) -> Floats:
    """Relative errors of the series of the reported half; the model after the last one is the selection."""
    parts = []
    for recording, each in zip(recordings, walked, strict=True):
        forecasts = each.chosen if model == each.forecasts.shape[2] else each.forecasts[:, :, model]
        errors = relative_errors(forecasts, each.forecasts[:, :, 0], each.actual)
        parts.append(errors[~recording.chosen_on()])
    every = np.concatenate(parts)
    return every[np.isfinite(every).all(axis=1)]


def _peak_rows(recordings: Sequence[Recording], walked: Sequence[Walked]) -> dict[str, PeakRow]:
    return {
        row: at_equal_slack(
            *(
                _joined([part[:, ~each.chosen_on()] for each, part in zip(recordings, parts, strict=True)])
                for parts in zip(*((one.rows[row], one.bounds, one.now, one.came) for one in walked), strict=True)
            )
        )
        for row in walked[0].rows
    }


def _joined(parts: Sequence[Floats]) -> Floats:
    """Side by side, the shorter ones filled up with NaN."""
    longest = max(len(part) for part in parts)
    filled = [np.pad(part, ((0, longest - len(part)), (0, 0)), constant_values=np.nan) for part in parts]
    return np.concatenate(filled, axis=1)


def _coverage(recordings: Sequence[Recording], peaks: Sequence[Predictor]) -> Coverage:
    held, slack = [], []
    for recording in recordings:
        walked = walk_all(recording, peaks)
        known = walked.calibrated & np.isfinite(walked.bounds) & np.isfinite(walked.came)
        for column in np.flatnonzero(~recording.chosen_on()):
            there = known[:, column]
            distance = walked.bounds[there, column] - walked.came[there, column]
            held.append((distance >= 0).astype(np.float64))
            slack.append(distance)
    return coverage_of(held, slack, PROMISE)
