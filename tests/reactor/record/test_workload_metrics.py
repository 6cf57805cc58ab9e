"""Current and predicted load of workloads in /metrics: sums over replicas, a bounded number of series."""

from __future__ import annotations

import numpy as np
import pytest
from prometheus_client import CollectorRegistry

from reactor.background.load_sampling import LoadSampling
from reactor.cluster.records import HorizontalPodAutoscaler
from reactor.forecasts.forecasts import AxisForecasts, Forecasts, KindForecasts, MemoryGrowth
from reactor.history.levels import Axis
from reactor.record.workload_metrics import WorkloadMetrics
from reactor.settings.model import Settings
from tests.support.cluster import make_node, make_pod
from tests.support.rig import Rig

WEB = {"namespace": "shop", "kind": "ReplicaSet", "workload": "web"}


@pytest.fixture
def rig() -> Rig:
    rig = Rig()
    rig.sync(make_pod("web-1"), make_pod("web-2"), make_node("n1"))
    return rig


def registry_of(rig: Rig) -> CollectorRegistry:
    registry = CollectorRegistry()
    registry.register(WorkloadMetrics(rig.state, lambda: rig.settings))
    return registry


def predicted(rig: Rig, at: float) -> Forecasts:
    found = AxisForecasts(np.full((1, 3), 1.5), np.full((1, 3), 2.5), np.full((1, 3), True), np.full(1, False))
    of_workloads = KindForecasts({"shop/ReplicaSet/web": 0}, {Axis.CPU: found})
    return Forecasts(at, workloads=of_workloads, growth={"shop/web-1": MemoryGrowth(1.0, 60.0)})


def test_loads_are_sums_over_replicas_and_predictions_have_a_horizon(rig: Rig) -> None:
    rig.measure({"web-1": 0.4, "web-2": 1.0}, {"n1": 2.0})
    rig.state.forecasts = predicted(rig, rig.clock.now())
    registry = registry_of(rig)
    assert registry.get_sample_value("rematch_current_cpu_cores", WEB) == pytest.approx(1.4)
    assert registry.get_sample_value("rematch_predicted_cpu_cores", {**WEB, "horizon": "5m"}) == 1.5
    peak = {**WEB, "horizon": "1h", "trust": "calibrated"}
    assert registry.get_sample_value("rematch_predicted_peak_cpu_cores", peak) == 2.5
    growing = {"namespace": "shop", "pod": "web-1"}
    assert registry.get_sample_value("rematch_pod_memory_limit_seconds", growing) == 60.0


def test_what_is_not_fresh_is_missing(rig: Rig) -> None:
    rig.measure({"web-1": 0.4}, {"n1": 2.0})
    rig.state.forecasts = predicted(rig, rig.clock.now() - 1000)
    registry = registry_of(rig)
    assert registry.get_sample_value("rematch_current_cpu_cores", WEB) is None, "web-2 has no sample"
    rig.measure({"web-1": 0.4, "web-2": 1.0}, {"n1": 2.0})
    assert registry.get_sample_value("rematch_predicted_cpu_cores", {**WEB, "horizon": "5m"}) is None


def test_a_replica_that_is_too_new_to_be_measured_hides_nobody(rig: Rig) -> None:
    """Else an autoscaler would not know the load while it adds replicas."""
    rig.sync(make_pod("web-3", created=rig.clock.now() - 5))
    rig.measure({"web-1": 0.4, "web-2": 1.0}, {"n1": 2.0})
    assert registry_of(rig).get_sample_value("rematch_current_cpu_cores", WEB) == pytest.approx(1.4)


async def test_an_autoscaled_workload_is_predicted_one_minute_ahead(rig: Rig) -> None:
    rig.measure({"web-1": 0.4, "web-2": 1.0}, {"n1": 2.0})
    sampling = LoadSampling(rig.state, lambda: rig.settings, rig.clock)
    one_minute = {**WEB, "horizon": "1m"}
    await sampling.sample()
    assert registry_of(rig).get_sample_value("rematch_predicted_cpu_cores", one_minute) is None, "nobody scales it"
    rig.sync(HorizontalPodAutoscaler("uid-hpa", "shop", "web", "", "Deployment", "web"))
    await sampling.sample()
    assert registry_of(rig).get_sample_value("rematch_predicted_cpu_cores", one_minute) == pytest.approx(1.4)


def test_the_number_of_series_is_bounded(rig: Rig) -> None:
    rig.settings = Settings.model_validate({"forecasting": {"exportedWorkloads": 0}})
    rig.measure({"web-1": 0.4, "web-2": 1.0}, {"n1": 2.0})
    registry = registry_of(rig)
    assert registry.get_sample_value("rematch_current_cpu_cores", WEB) is None
    assert registry.get_sample_value("rematch_workloads_not_exported") == 1.0
