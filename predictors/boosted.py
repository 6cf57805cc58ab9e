"""One gradient-boosted model for all series: the value at each horizon."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

from predictors.boosted_horizons import fit_horizons, horizons_from_state, predict_horizons, state_of_horizons
from predictors.boosting import Boosted, Learning
from predictors.protocol import Floats, History, State, Target

ABSOLUTE = Learning("absolute_error", None)


@dataclass(frozen=True, slots=True)
class BoostedValue:
    """The absolute error is what is measured, so it is what is learned."""

    learning: Learning = ABSOLUTE
    examples: int = 60_000
    models: Mapping[float, Boosted] = field(default_factory=dict)
    """By horizon in minutes."""
    name: str = "boosted"
    target: Target = Target.VALUE

    def fit(self, history: History, minutes: Sequence[float], seconds: float) -> Self:
        found = fit_horizons(history, minutes, seconds, self.target, self.learning, self.examples)
        return replace(self, models=found)

    def predict(self, history: History, minutes: Sequence[float]) -> Floats:
        return predict_horizons(self.models, history, minutes)

    def state(self) -> State:
        return state_of_horizons(self.models)

    def restore(self, state: State) -> Self:
        return replace(self, models=horizons_from_state(state))
