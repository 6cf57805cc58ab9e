"""What predictors look like from outside; each kind passes one suite of contract tests (`predictors.testing`).

A *predictor* answers for many series and horizons at once. A *peak estimator* needs no training and no horizon: it is
what the controller uses for every sample that comes in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Numbers = Sequence[float] | NDArray[np.floating]
Floats = NDArray[np.float64]
State = Mapping[str, NDArray[Any]]
"""What a model has learned, as plain arrays."""


class PredictorError(Exception):
    """Base of the errors of this package."""


class NotEnoughHistory(PredictorError):
    """There is too little to learn from; the answer is a predictor that needs no training."""


class Target(StrEnum):
    VALUE = "value"
    """The value at the horizon."""
    PEAK = "peak"
    """The most until the horizon."""


@dataclass(frozen=True, slots=True)
class History:
    """Samples of many series at common times: one row each, oldest column first. NaN is no sample."""

    values: NDArray[np.float32]
    step: float
    """Seconds between two columns."""
    cut: NDArray[np.bool_] | None = None
    """Where demand was cut by throttling or a full node: it was at least the sample, how much more is unknown."""

    def steps(self, minutes: float) -> int:
        return max(1, round(minutes * 60 / self.step))

    def until(self, columns: int) -> History:
        """As it was when it had so many columns."""
        return History(self.values[:, :columns], self.step, None if self.cut is None else self.cut[:, :columns])


class Predictor(Protocol):
    """A frozen dataclass. What it says of a series does not depend on the series beside it."""

    @property
    def name(self) -> str: ...

    @property
    def target(self) -> Target: ...

    def predict(self, history: History, minutes: Sequence[float]) -> Floats:
        """A row per series, a column per horizon; NaN where it has no answer, e.g. outside what it has seen."""
        ...


@runtime_checkable
class TrainedPredictor(Predictor, Protocol):
    """Before its training it has no answer to anything."""

    def fit(self, history: History, minutes: Sequence[float], seconds: float) -> Self:
        """A trained copy for these horizons, within so many seconds. Raises NotEnoughHistory."""
        ...

    def state(self) -> State:
        """What it has learned."""
        ...

    def restore(self, state: State) -> Self:
        """A copy that predicts as the one did whose state this is."""
        ...


class PeakEstimator(Protocol):
    def estimate(self, values: Numbers, times: Numbers) -> float:
        """The most that one series will need soon. Never below its latest value; NaN samples are no samples.

        NaN when there is no sample at all: unknown is not zero.
        """
        ...

    def estimate_rows(self, rows: NDArray[np.floating]) -> NDArray[np.float64]:
        """The same for many series sampled at common times: one row each, oldest column first."""
        ...
