"""The forecast peaks of pods as the settings and their annotations choose them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from reactor.cluster.records import Pod
from reactor.forecasts.forecasts import Forecasts
from reactor.history.codes import Floats
from reactor.history.levels import Axis
from reactor.settings.duration import format_duration, parse_duration
from reactor.settings.model import FORECAST_HORIZONS, Forecasting, PeakSource

COVERAGE = "rematch.io/peak-coverage"
HORIZON = "rematch.io/peak-horizon"
ESTIMATOR = "rematch.io/peak-estimator"
OLD = 900.0
"""Forecasts that were not renewed for so many seconds are not used."""
_AXES = (Axis.CPU, Axis.MEMORY)


@dataclass(frozen=True, slots=True)
class PeakChoice:
    """`problem` names annotations that are not as they should be; the settings count instead."""

    estimator: PeakSource
    horizon: float
    coverage: float
    problem: str = ""


def peak_choice(pod: Pod, settings: Forecasting) -> PeakChoice:
    stated = PeakChoice(settings.estimator, settings.horizon, settings.coverage)
    if not any(name in pod.annotations for name in (COVERAGE, HORIZON, ESTIMATOR)):
        return stated
    problems: list[str] = []
    estimator, horizon = settings.estimator, settings.horizon
    if ESTIMATOR in pod.annotations:
        if pod.annotations[ESTIMATOR] == PeakSource.HISTORY:
            estimator = PeakSource.HISTORY
        else:
            problems.append(f"{ESTIMATOR}={pod.annotations[ESTIMATOR][:40]!r} is not 'history'")
    if HORIZON in pod.annotations:
        asked = _horizon(pod.annotations[HORIZON])
        horizon = horizon if asked is None else asked
        if asked is None:
            problems.append(f"{HORIZON}={pod.annotations[HORIZON][:40]!r} is not 5m, 15m or 1h")
    if COVERAGE in pod.annotations and _share(pod.annotations[COVERAGE]) is None:
        problems.append(f"{COVERAGE}={pod.annotations[COVERAGE][:40]!r} is not a number from 0 to 1")
    return PeakChoice(estimator, horizon, coverage_of(pod, settings), "; ".join(problems))


def coverage_of(pod: Pod, settings: Forecasting) -> float:
    text = pod.annotations.get(COVERAGE)
    asked = None if text is None else _share(text)
    return settings.coverage if asked is None else settings.annotation_bounds.clamp(asked)


def cpu_limit(pod: Pod) -> float | None:
    """Of all containers together; None if one has none."""
    limits = [each.cpu_limit for each in pod.containers]
    return None if not limits or None in limits else sum(limit for limit in limits if limit is not None)


def memory_limit(pod: Pod) -> float | None:
    limits = [each.memory_limit for each in pod.containers]
    return None if not limits or None in limits else sum(limit for limit in limits if limit is not None)


def _horizon(text: str) -> float | None:
    try:
        seconds = parse_duration(text)
    except ValueError:
        return None
    return seconds if isinstance(seconds, float) and seconds in FORECAST_HORIZONS else None


def _share(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 <= value <= 1 else None


@dataclass(frozen=True, slots=True)
class ForecastNeeds:
    """The forecasts as the settings use them."""

    forecasts: Forecasts = field(default_factory=Forecasts)
    settings: Forecasting = field(default_factory=Forecasting)

    def peaks(self, pods: Sequence[Pod], now: float) -> PodPeaks:
        """Of CPU and memory. NaN for pods without a forecast, or that go by their history; all NaN when the forecasts
        are old."""
        of_pods, known = self.forecasts.pods, len(pods)
        nothing = np.full((known, len(_AXES)), np.nan)
        if not of_pods.rows or now - self.forecasts.at > OLD or self.settings.estimator is PeakSource.HISTORY:
            return PodPeaks(nothing, np.zeros(known, np.bool_), np.zeros(known, np.bool_))
        rows = np.fromiter((of_pods.rows.get(pod.key, -1) for pod in pods), np.intp, known)
        columns = np.full(known, FORECAST_HORIZONS.index(self.settings.horizon))
        for at, pod in enumerate(pods):
            if HORIZON in pod.annotations or ESTIMATOR in pod.annotations:
                choice = peak_choice(pod, self.settings)
                columns[at] = FORECAST_HORIZONS.index(choice.horizon)
                rows[at] = -1 if choice.estimator is PeakSource.HISTORY else rows[at]
        found = [of_pods.axes[axis] for axis in _AXES]
        here = (rows >= 0)[:, np.newaxis]
        peaks = np.where(here, np.stack([each.peaks[rows, columns] for each in found], axis=1), np.nan)
        calibrated = np.logical_and.reduce([each.calibrated[rows, columns] for each in found])
        cut = np.logical_or.reduce([each.at_least[rows] for each in found])
        return PodPeaks(peaks, calibrated & here[:, 0], cut & here[:, 0])


@dataclass(frozen=True, slots=True)
class PodPeaks:
    """A row per pod."""

    peaks: Floats
    calibrated: NDArray[np.bool_]
    cut: NDArray[np.bool_]
    """Demand is being cut: the peaks are lower bounds."""

    @property
    def known(self) -> NDArray[np.bool_]:
        known: NDArray[np.bool_] = np.logical_and.reduce(np.isfinite(self.peaks), axis=1)
        return known

    @property
    def sure(self) -> NDArray[np.bool_]:
        """Peaks that can stand alone."""
        return self.known & self.calibrated & ~self.cut

    def described(self, settings: Forecasting) -> str:
        """For the plan; empty without any forecast."""
        known, sure, cut = (int(each.sum()) for each in (self.known, self.sure, self.known & self.cut))
        if not known:
            return ""
        horizon = format_duration(settings.horizon)
        unsure = known - sure - cut
        parts = [
            f"{sure} calibrated" if sure else "",
            f"{unsure} uncalibrated (not below the past peak)" if unsure else "",
            f"{cut} lower bounds because demand was cut (not below the past peak)" if cut else "",
        ]
        rest = len(self.peaks) - known
        by_rest = f", {rest} without a forecast" if rest else ""
        shares = ", ".join(part for part in parts if part)
        return f"peaks forecast by {settings.estimator} until {horizon} at {settings.coverage:.0%}: {shares}{by_rest}"
