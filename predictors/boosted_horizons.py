"""What the boosted predictors share: a model per horizon."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from predictors.boosting import Boosted, Learning, boosted_from_state, learn
from predictors.features import describe, newest
from predictors.protocol import Floats, History, State, Target
from predictors.training_rows import draw_examples


def fit_horizons(
    history: History, minutes: Sequence[float], seconds: float, target: Target, how: Learning, examples: int
) -> dict[float, Boosted]:
    return {
        horizon: learn(*draw_examples(history, history.steps(horizon), target, examples), how, seconds / len(minutes))
        for horizon in minutes
    }


def predict_horizons(models: Mapping[float, Boosted], history: History, minutes: Sequence[float]) -> Floats:
    """NaN for a horizon that was not trained."""
    predicted = np.full((history.values.shape[0], len(minutes)), np.nan)
    if not predicted.size or not history.values.shape[1]:
        return predicted
    for column, horizon in enumerate(minutes):
        if horizon in models:
            predicted[:, column] = models[horizon].predict(describe(history, newest(history), history.steps(horizon)))
    return predicted


def state_of_horizons(models: Mapping[float, Boosted]) -> State:
    return {name: array for horizon, model in models.items() for name, array in model.state(f"{horizon:g}").items()}


def horizons_from_state(state: State) -> dict[float, Boosted]:
    """Raises DamagedTrees."""
    prefixes = sorted({name.rpartition(".")[0] for name in state})
    return {float(prefix): boosted_from_state(state, prefix) for prefix in prefixes}
