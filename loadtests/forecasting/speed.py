"""How long one pass takes for a large cluster, and how much memory: two axes, all models, horizons and peaks."""

from __future__ import annotations

import resource
import time
from dataclasses import dataclass

import numpy as np

from predictors.boosted import BoostedValue
from predictors.boosted_peak import BoostedPeak
from predictors.forecasting import Forecasting
from predictors.last_value import LastValue
from predictors.peaks import SigmaOrPercentile
from predictors.protocol import History, Predictor
from predictors.ridge import Ridge
from predictors.seasonal import Seasonal
from predictors.smoothing import Smoothing

PODS, AXES, DAYS, STEP = 20_000, 2, 3, 300.0
MINUTES = (5.0, 15.0, 75.0)
PASSES = 3


@dataclass(frozen=True, slots=True)
class Speed:
    seconds: float
    """CPU time of a pass over all axes, the slowest of some."""
    mebibytes: float
    """The most memory the process had."""
    training_seconds: float


def measure() -> Speed:
    draw = np.random.default_rng(1)
    columns = int(DAYS * 86400 / STEP)
    values = np.empty((PODS, columns + PASSES), dtype=np.float32)
    for row in range(0, PODS, 1000):
        values[row : row + 1000] = draw.gamma(2.0, 0.5, (1000, columns + PASSES)) * draw.lognormal(0, 2, (1000, 1))
    keys = [f"pod-{number}" for number in range(PODS)]
    started = time.process_time()
    learned = History(values[:2000, :columns], STEP)
    value = BoostedValue().fit(learned, MINUTES, 30.0)
    peak = BoostedPeak().fit(learned, MINUTES, 25.0)
    training = time.process_time() - started
    models: list[Predictor] = [LastValue(), Smoothing(), Seasonal(), Ridge(), value]
    axes = [Forecasting(models, [peak, SigmaOrPercentile()], MINUTES) for _ in range(AXES)]
    slowest = 0.0
    for at in range(columns, columns + PASSES):
        started = time.process_time()
        for axis in axes:
            axis.advance(keys, History(values[:, :at], STEP), at * STEP)
        slowest = max(slowest, time.process_time() - started)
    return Speed(slowest, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, training)
