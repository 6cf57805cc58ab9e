"""What is forecast, as frozen values: for each series and horizon a value, a peak, and how far to trust them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from reactor.history.codes import Floats
from reactor.history.levels import Axis
from reactor.settings.model import FORECAST_HORIZONS

HORIZON_MINUTES = tuple(seconds / 60 for seconds in FORECAST_HORIZONS)


class Trust(StrEnum):
    """How sure a peak is."""

    CALIBRATED = "calibrated"
    """It has kept its promise over enough windows."""
    UNCALIBRATED = "uncalibrated"
    """Too few windows have ended: a cold start."""
    LOWER_BOUND = "lower bound"
    """Demand is being cut by throttling or a full node: it may be higher than anything that was measured."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """Of one series on one axis until one horizon."""

    value: float
    peak: float
    trust: Trust


@dataclass(frozen=True, slots=True)
class AxisForecasts:
    """Arrays are series by horizons (`FORECAST_HORIZONS`); NaN where nothing can be said."""

    values: Floats
    peaks: Floats
    calibrated: NDArray[np.bool_]
    at_least: NDArray[np.bool_]
    """By series: demand is being cut right now."""

    def trust(self, row: int, horizon: int) -> Trust:
        if self.at_least[row]:
            return Trust.LOWER_BOUND
        return Trust.CALIBRATED if self.calibrated[row, horizon] else Trust.UNCALIBRATED


@dataclass(frozen=True, slots=True)
class KindForecasts:
    """Of all pods, all workloads (the sum of their replicas) or all nodes (the sum of the pods that are there now)."""

    rows: Mapping[str, int] = field(default_factory=dict)
    """By name, as in the history."""
    axes: Mapping[Axis, AxisForecasts] = field(default_factory=dict)

    def of(self, name: str, axis: Axis, horizon: float) -> Forecast | None:
        """`horizon` in seconds. None where nothing can be said."""
        row, found = self.rows.get(name), self.axes.get(axis)
        if row is None or found is None:
            return None
        column = FORECAST_HORIZONS.index(horizon)
        value, peak = float(found.values[row, column]), float(found.peaks[row, column])
        if np.isnan(value) or np.isnan(peak):
            return None
        return Forecast(value, peak, found.trust(row, column))


@dataclass(frozen=True, slots=True)
class MemoryGrowth:
    """A pod whose memory grows steadily."""

    bytes_per_second: float
    seconds_to_limit: float


@dataclass(frozen=True, slots=True)
class Forecasts:
    at: float = float("-inf")
    """The end of the last step that they were made from."""
    pods: KindForecasts = field(default_factory=KindForecasts)
    workloads: KindForecasts = field(default_factory=KindForecasts)
    nodes: KindForecasts = field(default_factory=KindForecasts)
    growth: Mapping[str, MemoryGrowth] = field(default_factory=dict)
    """By pod, `namespace/name`; only pods with a memory limit that they will reach."""
    estimator: str = ""
    """Of the peaks."""
    trained_at: Mapping[Axis, float] = field(default_factory=dict)
    """When the last sample was taken that the models of an axis have learned from."""
