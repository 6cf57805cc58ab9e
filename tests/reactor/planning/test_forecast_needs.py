"""What a pod needs by its forecast: sure ones stand alone, others only raise what is known."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace as with_fields

from matching.problem import Options, Problem
from reactor.cluster.records import Pod
from reactor.forecasts.forecasts import AxisForecasts, Forecasts, KindForecasts
from reactor.forecasts.pod_forecasts import ForecastNeeds, peak_choice
from reactor.history.levels import Axis
from reactor.planning.problem_builder import ProblemBuilder
from reactor.settings.model import Forecasting
from tests.support.cluster import make_node, make_pod
from tests.support.rig import Rig


def forecasts(at: float, *, peak: float, calibrated: bool = True, cut: bool = False) -> Forecasts:
    def of(value: float) -> AxisForecasts:
        shape = (1, 3)
        return AxisForecasts(np.full(shape, value), np.full(shape, value), np.full(shape, calibrated), np.full(1, cut))

    pods = KindForecasts({"shop/web-1": 0}, {Axis.CPU: of(peak), Axis.MEMORY: of(1e8)})
    return Forecasts(at, pods, estimator="boosted-peak")


def problem(found: Forecasts, pod: Pod, *, settings: dict[str, Any] | None = None) -> Problem:
    rig = Rig()
    rig.sync(pod, make_node("n1"))
    for cores in (2.0, 0.5):
        rig.measure({"web-1": cores}, {"n1": 2.0})
    snapshot = rig.snapshot()
    needs = ForecastNeeds(replace(found, at=snapshot.at + found.at), Forecasting.model_validate(settings or {}))
    builder = ProblemBuilder(replace(snapshot, forecasts=needs))
    builder.add(pod)
    return builder.problem(Options())


@pytest.mark.parametrize(
    ("found", "settings", "cores", "note"),
    [
        (forecasts(0.0, peak=0.9), {}, 0.9, "1 calibrated"),
        (forecasts(0.0, peak=0.2), {}, 0.5, "1 calibrated"),
        (forecasts(0.0, peak=0.9, calibrated=False), {}, 2.0, "1 uncalibrated"),
        (forecasts(0.0, peak=9.0, calibrated=False), {}, 9.0, "1 uncalibrated"),
        (forecasts(0.0, peak=0.9, cut=True), {}, 2.0, "lower bound"),
        (forecasts(-1000.0, peak=0.9), {}, 2.0, ""),
        (forecasts(0.0, peak=0.9), {"estimator": "history"}, 2.0, ""),
    ],
)
def test_the_quota_counts_the_forecast_peak(
    found: Forecasts, settings: dict[str, Any], cores: float, note: str
) -> None:
    made = problem(found, make_pod("web-1"), settings=settings)
    assert made.pods[0].peak[0] >= min(cores, 2.0) if cores == 2.0 else made.pods[0].peak[0] == pytest.approx(cores)
    assert note in made.estimates
    assert bool(made.estimates) == bool(note)


def test_a_peak_is_at_most_the_limit() -> None:
    pod = make_pod("web-1")
    limited = with_fields(pod, containers=tuple(with_fields(each, cpu_limit=1.0) for each in pod.containers))
    assert problem(forecasts(0.0, peak=9.0), limited).pods[0].peak[0] == pytest.approx(1.0)


def test_annotations_choose_within_bounds() -> None:
    settings = Forecasting()
    asked = {
        "rematch.io/peak-coverage": "0.1",
        "rematch.io/peak-horizon": "15m",
        "rematch.io/peak-estimator": "history",
    }
    choice = peak_choice(with_fields(make_pod("web-1"), annotations=asked), settings)
    assert (choice.coverage, choice.horizon, choice.estimator, choice.problem) == (0.8, 900.0, "history", "")
    wrong = dict.fromkeys(asked, "much")
    choice = peak_choice(with_fields(make_pod("web-1"), annotations=wrong), settings)
    assert (choice.coverage, choice.horizon, choice.estimator) == (0.95, 3600.0, "boosted-peak")
    assert choice.problem.count("'much'") == 3
    made = problem(forecasts(0.0, peak=0.9), with_fields(make_pod("web-1"), annotations=asked))
    assert made.pods[0].peak[0] > 0.9
