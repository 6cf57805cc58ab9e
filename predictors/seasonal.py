"""The same time of a day and of a week ago, shifted by how much the last hour differs from that hour then."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from predictors.means import mean
from predictors.protocol import Floats, History, Target

DAY_MINUTES = 24 * 60.0


@dataclass(frozen=True, slots=True)
class Seasonal:
    level_minutes: float = 60.0
    shift: float = 0.5
    """How much of the difference is expected to last."""
    name: str = "seasonal"
    target: Target = Target.VALUE

    def predict(self, history: History, minutes: Sequence[float]) -> Floats:
        return np.stack([self._at(history, history.steps(horizon)) for horizon in minutes], axis=1)

    def _at(self, history: History, ahead: int) -> Floats:
        """The mean of what yesterday and the week before say, as far as there are any."""
        level = history.steps(self.level_minutes)
        now = mean(history.values[:, -level:])
        answers = []
        for days in (1, 7):
            then = history.values.shape[1] - history.steps(days * DAY_MINUTES)
            around = mean(_columns(history.values, then + ahead - 1 - level // 4, then + ahead + level // 4))
            answers.append(around + self.shift * (now - mean(_columns(history.values, then - level, then))))
        return mean(np.stack(answers, axis=1))


def _columns(values: NDArray[np.float32], start: int, end: int) -> NDArray[np.float32]:
    return values[:, max(0, start) : max(0, end)]
