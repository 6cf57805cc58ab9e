"""What is forecast beside what was used: per replica of a workload, marked by trust, and only while it is fresh."""

from __future__ import annotations

import numpy as np
import pytest

from reactor.forecasts.forecasts import AxisForecasts, Forecasts, KindForecasts
from reactor.history.levels import Axis
from reactor.record.usage_forecasts import with_forecasts
from reactor.record.usage_reader import UsageAxis, UsageDocument, UsageForecast

NOW = 10_000.0
WEB = "shop/ReplicaSet/web"


def document(kind: str, name: str) -> UsageDocument:
    axes = tuple(UsageAxis(axis, unit, (1.0,), (1.0,)) for axis, unit in (("cpu", "cores"), ("ready", "share")))
    return UsageDocument(kind, name, 60, (NOW - 60,), axes)


def forecasts(name: str, *, cut: bool = False) -> KindForecasts:
    """Nothing can be said of the last horizon."""
    values, peaks = np.array([[2.0, 3.0, np.nan]]), np.array([[4.0, 6.0, np.nan]])
    calibrated = np.array([[True, False, False]])
    return KindForecasts({name: 0}, {Axis.CPU: AxisForecasts(values, peaks, calibrated, np.array([cut]))})


def cpu_of(found: UsageDocument) -> UsageForecast | None:
    assert found.axes[1].forecast is None, "readiness is not forecast"
    return found.axes[0].forecast


def test_each_horizon_has_its_time_and_its_trust() -> None:
    made = Forecasts(NOW - 60, pods=forecasts("shop/web-1"))
    found = cpu_of(with_forecasts(document("pod", "shop/web-1"), made, {}, NOW))
    times = (NOW + 240, NOW + 840)
    assert found == UsageForecast(NOW - 60, times, (2.0, 3.0), (4.0, 6.0), ("calibrated", "uncalibrated"))


def test_the_forecast_of_a_workload_is_shown_for_each_replica_as_its_usage_is() -> None:
    made = Forecasts(NOW, workloads=forecasts(WEB))
    found = cpu_of(with_forecasts(document("workload", WEB), made, {WEB: 4}, NOW))
    assert found is not None
    assert (found.values, found.peaks) == ((0.5, 0.75), (1.0, 1.5))
    assert cpu_of(with_forecasts(document("workload", WEB), made, {}, NOW)) is None, "the replicas are not known"


def test_demand_that_is_cut_is_marked_for_nodes() -> None:
    made = Forecasts(NOW, nodes=forecasts("n1", cut=True))
    found = cpu_of(with_forecasts(document("node", "n1"), made, {}, NOW))
    assert found is not None
    assert found.trust == ("lower bound", "lower bound")


@pytest.mark.parametrize(("name", "made_at"), [("shop/web-1", NOW - 1000), ("shop/other", NOW)])
def test_old_forecasts_and_other_pods_are_not_shown(name: str, made_at: float) -> None:
    made = Forecasts(made_at, pods=forecasts("shop/web-1"))
    assert cpu_of(with_forecasts(document("pod", name), made, {}, NOW)) is None
