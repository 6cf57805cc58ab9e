"""The next value is the last one: what every other model has to beat."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from predictors.protocol import Floats, History, Target
from predictors.recent import latest


@dataclass(frozen=True, slots=True)
class LastValue:
    name: str = "last-value"
    target: Target = Target.VALUE

    def predict(self, history: History, minutes: Sequence[float]) -> Floats:
        return np.repeat(latest(history.values)[:, np.newaxis], len(minutes), axis=1)
