"""Mean + N sigma of the last two hours (EuroSys'21, "N-sigma")."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from predictors.means import deviation, mean
from predictors.protocol import Floats, History, Target
from predictors.recent import latest


@dataclass(frozen=True, slots=True)
class NSigma:
    sigmas: float = 3.0
    minutes: float = 120.0
    name: str = "n-sigma"
    target: Target = Target.PEAK

    def predict(self, history: History, minutes: Sequence[float]) -> Floats:
        window = history.values[:, -history.steps(self.minutes) :]
        centre = mean(window)
        peak = np.fmax(centre + self.sigmas * deviation(window, centre), latest(history.values))
        return np.repeat(peak[:, np.newaxis], len(minutes), axis=1)
