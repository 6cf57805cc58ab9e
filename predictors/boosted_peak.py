"""One gradient-boosted model for all series: a quantile of the most that each will use until the horizon.

The maximum is predicted itself: the maximum of a forecast misses badly, because a forecast is a middle. The answer is
the mean of this and of a high percentile of the day: the model knows what is near, and the day what can happen at all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from predictors.boosted_horizons import fit_horizons, horizons_from_state, predict_horizons, state_of_horizons
from predictors.boosting import Boosted, Learning
from predictors.percentile import Percentile
from predictors.protocol import Floats, History, State, Target
from predictors.recent import latest

QUANTILE = Learning("quantile", 0.95)


@dataclass(frozen=True, slots=True)
class BoostedPeak:
    learning: Learning = QUANTILE
    examples: int = 60_000
    models: Mapping[float, Boosted] = field(default_factory=dict)
    """By horizon in minutes."""
    name: str = "boosted-peak"
    target: Target = Target.PEAK

    def fit(self, history: History, minutes: Sequence[float], seconds: float) -> Self:
        found = fit_horizons(history, minutes, seconds, self.target, self.learning, self.examples)
        return replace(self, models=found)

    def predict(self, history: History, minutes: Sequence[float]) -> Floats:
        boosted = predict_horizons(self.models, history, minutes)
        answer = (boosted + Percentile().predict(history, minutes)) / 2
        return np.maximum(answer, latest(history.values)[:, np.newaxis])

    def state(self) -> State:
        return state_of_horizons(self.models)

    def restore(self, state: State) -> Self:
        return replace(self, models=horizons_from_state(state))
