"""The history of usage: unknown, stale and broken never read as zero."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from predictors.peaks import SigmaOrPercentile
from reactor.cluster.records import NodeUsageSample, Owner, Pod, PodUsageSample
from reactor.signals.measurements import MetricsSource, Peak, Quality, ThrottleSample
from reactor.signals.usage import UsageHistory
from reactor.signals.workloads import workload_key

MakePod = Callable[..., Pod]
PROMETHEUS, METRICS_API = MetricsSource.PROMETHEUS, MetricsSource.METRICS_API


def sample(cpu: float | None, memory: float | None, at: float, name: str = "web-1") -> PodUsageSample:
    return PodUsageSample("default", name, cpu, memory, at)


@pytest.fixture
def history(make_pod: MakePod) -> UsageHistory:
    history = UsageHistory(120.0, 900.0, SigmaOrPercentile())
    history.observe_pod(make_pod())
    history.observe_node("node1", ["10.0.0.1"])
    return history


def test_missing_is_not_zero(history: UsageHistory) -> None:
    usage = history.freeze(1000.0).usage("u1")
    assert usage.cpu.quality is Quality.MISSING
    assert usage.cpu.fresh is None
    assert not usage.known
    assert history.freeze(1000.0).usage("nobody").memory.quality is Quality.MISSING
    assert history.freeze(1000.0).peak("u1") == Peak()


def test_fresh_then_stale(history: UsageHistory) -> None:
    history.record_pods([sample(0.5, 1e9, 1000.0)], PROMETHEUS, 1000.0)
    assert history.freeze(1100.0).usage("u1").known
    assert history.freeze(1100.0).usage("u1").cpu.fresh == 0.5
    stale = history.freeze(1121.0).usage("u1").cpu
    assert (stale.quality, stale.value, stale.fresh) == (Quality.STALE, 0.5, None)


def test_zero_is_a_measurement(history: UsageHistory) -> None:
    history.record_pods([sample(0.0, 0.0, 1000.0)], PROMETHEUS, 1000.0)
    assert history.freeze(1000.0).usage("u1").cpu.fresh == 0.0
    assert history.freeze(1000.0).usage("u1").known


@pytest.mark.parametrize("broken", [math.nan, math.inf, -math.inf, -0.1])
def test_broken_values_are_invalid(history: UsageHistory, broken: float) -> None:
    history.record_pods([sample(broken, 1e9, 1000.0)], PROMETHEUS, 1000.0)
    usage = history.freeze(1000.0).usage("u1")
    assert usage.cpu.quality is Quality.INVALID
    assert usage.memory.quality is Quality.FRESH
    assert history.freeze(1000.0).peak("u1") == Peak(None, 1e9)


def test_the_metrics_api_fills_what_prometheus_did_not_report(history: UsageHistory) -> None:
    history.record_pods([sample(0.5, None, 1000.0)], PROMETHEUS, 1000.0)
    history.record_pods([sample(0.7, 2e9, 1010.0)], METRICS_API, 1010.0)
    usage = history.freeze(1010.0).usage("u1")
    assert (usage.cpu.fresh, usage.cpu.source) == (0.5, PROMETHEUS)
    assert (usage.memory.fresh, usage.memory.source) == (2e9, METRICS_API)
    history.record_pods([sample(0.8, 2e9, 1200.0)], METRICS_API, 1200.0)
    assert history.freeze(1200.0).usage("u1").cpu.fresh == 0.8, "Prometheus has gone silent"
    history.record_pods([sample(0.6, None, 1210.0)], PROMETHEUS, 1210.0)
    assert history.freeze(1210.0).usage("u1").cpu.fresh == 0.6


def test_a_broken_series_does_not_push_out_the_other_source(history: UsageHistory) -> None:
    history.record_pods([sample(math.nan, 1e9, 1000.0)], PROMETHEUS, 1000.0)
    history.record_pods([sample(0.3, 1e9, 1001.0)], METRICS_API, 1001.0)
    assert history.freeze(1001.0).usage("u1").cpu.fresh == 0.3
    history.record_pods([sample(math.nan, 1e9, 1015.0)], PROMETHEUS, 1015.0)
    assert history.freeze(1015.0).usage("u1").cpu.fresh == 0.3
    history.record_pods([sample(math.nan, 1e9, 1016.0)], METRICS_API, 1016.0)
    assert history.freeze(1016.0).usage("u1").cpu.quality is Quality.INVALID


def test_a_clock_ahead_of_ours_means_now(history: UsageHistory) -> None:
    history.record_pods([sample(0.5, 1e9, 9000.0)], METRICS_API, 1000.0)
    assert history.freeze(1000.0).usage("u1").cpu.at == 1000.0
    assert history.freeze(1500.0).usage("u1").cpu.quality is Quality.STALE


def test_a_sample_older_than_the_pod_is_another_pods(history: UsageHistory, make_pod: MakePod) -> None:
    history.forget_pod(make_pod())
    history.observe_pod(make_pod("u2", created=2000.0))
    history.record_pods([sample(0.9, 1e9, 1990.0)], PROMETHEUS, 2001.0)
    assert history.freeze(2001.0).usage("u2").cpu.quality is Quality.MISSING
    assert history.freeze(2001.0).usage("u1").cpu.quality is Quality.MISSING


def test_peak_is_never_below_now_and_forgets_after_the_window(history: UsageHistory) -> None:
    for step in range(60):
        now = 1000.0 + 15 * step
        history.record_pods([sample(1.0 if step == 5 else 0.1, 1e8, now)], PROMETHEUS, now)
    peak = history.freeze(1900.0).peak("u1").cpu
    assert peak is not None
    assert 0.4 < peak <= 1.0
    history.record_pods([sample(3.0, 1e8, 1900.0)], PROMETHEUS, 1900.0)
    assert (history.freeze(1900.0).peak("u1").cpu or 0) >= 3.0
    history.record_pods([sample(0.1, 1e8, 4000.0)], PROMETHEUS, 4000.0)
    assert history.freeze(4000.0).peak("u1").cpu == pytest.approx(0.1)


def test_a_replacement_inherits(make_pod: MakePod) -> None:
    owner = Owner("ReplicaSet", "web-abc", "rs")
    first = make_pod("u1", "web-abc-1", owner=owner, labels={"pod-template-hash": "abc"})
    second = make_pod("u2", "web-abc-2", owner=owner, labels={"pod-template-hash": "abc"})
    key = workload_key(first)
    assert key == "default/ReplicaSet/web"
    history = UsageHistory(120.0, 900.0, SigmaOrPercentile())
    history.observe_pod(first)
    history.observe_pod(second)
    assert history.freeze(999.0).workload_peak(key) == Peak()
    history.record_pods(
        [sample(0.5, 1e8, 1000.0, "web-abc-1"), sample(0.25, 3e8, 1000.0, "web-abc-2")], PROMETHEUS, 1000.0
    )
    assert history.freeze(1000.0).workload_peak(key) == Peak(0.5, 3e8)
    history.forget_pod(first)
    assert history.freeze(1000.0).workload_peak(key) == Peak(0.25, 3e8)
    history.forget_pod(second)
    assert history.freeze(1000.0).workload_peak(key) == Peak(0.25, 3e8)
    assert history.freeze(1000.0).workload_peak("default/ReplicaSet/other") == Peak()


def test_a_pod_that_its_owner_let_go_is_forgotten_with_its_workload(make_pod: MakePod) -> None:
    owner = Owner("ReplicaSet", "web-abc", "rs")
    owned = make_pod("u1", "web-abc-1", owner=owner, labels={"pod-template-hash": "abc"})
    history = UsageHistory(120.0, 900.0, SigmaOrPercentile())
    history.observe_pod(owned)
    history.record_pods([sample(0.5, 1e8, 1000.0, "web-abc-1")], PROMETHEUS, 1000.0)
    released = make_pod("u1", "web-abc-1", owner=None, labels={})
    history.observe_pod(released)
    history.forget_pod(released)
    assert history.freeze(1000.0).workload_peak(workload_key(owned)) == Peak(0.5, 1e8)


def test_nodes_are_found_by_name_host_and_address(history: UsageHistory) -> None:
    for name in ("node1", "10.0.0.1", "node1.example.org"):
        assert history.record_nodes([NodeUsageSample(name, 2.0, 4e9, 1000.0)], PROMETHEUS, 1000.0) == set()
    assert history.freeze(1000.0).node_usage("node1").known
    unknown = history.record_nodes([NodeUsageSample("10.9.9.9", 2.0, 4e9, 1000.0)], PROMETHEUS, 1000.0)
    assert unknown == {"10.9.9.9"}
    history.forget_node("node1")
    assert history.freeze(1000.0).node_usage("node1").cpu.quality is Quality.MISSING
    assert history.record_nodes([NodeUsageSample("node1", 2.0, 4e9, 1000.0)], PROMETHEUS, 1000.0) == {"node1"}


def test_a_view_does_not_change(history: UsageHistory, make_pod: MakePod) -> None:
    history.record_pods([sample(0.5, 1e9, 1000.0)], PROMETHEUS, 1000.0)
    history.record_throttling([ThrottleSample("default", "web-1", 0.25, 1000.0)], 1000.0)
    history.record_nodes([NodeUsageSample("node1", 2.0, 4e9, 1000.0)], PROMETHEUS, 1000.0)
    view = history.freeze(1010.0)
    history.record_pods([sample(0.9, 2e9, 1020.0)], PROMETHEUS, 1020.0)
    history.forget_pod(make_pod())
    assert view.usage("u1").cpu.fresh == 0.5
    assert view.peak("u1") == Peak(0.5, 1e9)
    assert view.throttled("u1").fresh == 0.25
    assert view.node_usage("node1").cpu.fresh == 2.0
    assert view.peak("nobody") == Peak()


def test_a_view_taken_in_between_changes_no_later_one(make_pod: MakePod) -> None:
    peaks = []
    for views in (0, 3):
        history = UsageHistory(120.0, 900.0, SigmaOrPercentile())
        history.observe_pod(make_pod())
        history.record_pods([sample(0.5, 1e9, 1000.0)], PROMETHEUS, 1000.0)
        for _ in range(views):
            history.freeze(1000.0)
        history.record_throttling([ThrottleSample("default", "web-1", 0.25, 3000.0)], 3000.0)
        peaks.append(history.freeze(3000.0).peak("u1"))
    assert peaks == [Peak(), Peak()]


def test_slots_are_used_again_without_leftovers(history: UsageHistory, make_pod: MakePod) -> None:
    history.record_pods([sample(0.5, 1e9, 1000.0)], PROMETHEUS, 1000.0)
    history.forget_pod(make_pod())
    history.forget_pod(make_pod())
    history.observe_pod(make_pod("u2", "web-2"))
    assert history.freeze(1000.0).usage("u2").cpu.quality is Quality.MISSING
    assert history.freeze(1000.0).peak("u2") == Peak()


def test_settings_change_while_running(history: UsageHistory) -> None:
    history.record_pods([sample(0.5, 1e9, 1000.0)], PROMETHEUS, 1000.0)
    history.configure(10.0, 900.0)
    assert history.freeze(1011.0).usage("u1").cpu.quality is Quality.STALE
    assert history.freeze(1011.0).peak("u1").cpu == 0.5
    history.configure(10.0, 3600.0)
    assert history.freeze(1011.0).peak("u1").cpu is None


def test_a_rate_over_more_than_the_pods_life_is_not_taken(make_pod: MakePod) -> None:
    history = UsageHistory(120.0, 900.0, SigmaOrPercentile())
    history.observe_pod(make_pod(created=1000.0))
    history.record_pods([sample(0.04, 1e8, 1030.0)], PROMETHEUS, 1030.0, cpu_window=120.0)
    young = history.freeze(1030.0).usage("u1")
    assert (young.cpu.quality, young.memory.fresh) == (Quality.MISSING, 1e8)
    history.record_pods([sample(0.5, 1e8, 1120.0)], PROMETHEUS, 1120.0, cpu_window=120.0)
    assert history.freeze(1120.0).usage("u1").cpu.fresh == 0.5


def test_the_needs_of_many_pods_at_once_are_those_of_each(history: UsageHistory, make_pod: MakePod) -> None:
    samples = {"a": (0.5, 1e9, 1000.0), "b": (0.2, 1e9, 850.0), "c": (math.nan, 1e9, 1000.0), "d": (None, 2e9, 1000.0)}
    for name, values in samples.items():
        history.observe_pod(make_pod(uid=name, name=name))
        history.record_pods([sample(*values, name=name)], METRICS_API, 1000.0)
    history.freeze(1000.0)
    history.observe_pod(make_pod(uid="new", name="new"))
    view = history.freeze(1000.0)
    uids = [*samples, "new", "nobody"]

    usage, peak, at = view.needs(uids)

    for row, uid in enumerate(uids):
        one, highest = view.usage(uid), view.peak(uid)
        assert [none_if_nan(value) for value in usage[row]] == [one.cpu.fresh, one.memory.fresh]
        assert [none_if_nan(value) for value in peak[row]] == [highest.cpu, highest.memory]
        assert view.knows(uid) is one.known
    assert at.tolist() == [1000.0, 850.0, 1000.0, 0.0, 0.0, 0.0]


def test_the_peak_of_a_pod_that_is_restarted_again_and_again_is_near_what_it_used(
    history: UsageHistory, make_pod: MakePod
) -> None:
    history.observe_pod(make_pod())
    for at in range(1020, 1800, 15):
        history.record_pods([sample(0.6 if at % 60 == 0 else 0.0, 1e9, float(at))], PROMETHEUS, float(at))
    peak = history.freeze(1790.0).peak("u1").cpu
    assert peak is not None
    assert 0.6 <= peak <= 0.75 + 1e-6


def none_if_nan(value: float) -> float | None:
    return None if math.isnan(value) else value


def test_a_frozen_view_does_not_change_with_the_history(history: UsageHistory, make_pod: MakePod) -> None:
    history.record_pods([sample(0.5, 1e8, 1000.0)], METRICS_API, 1000.0)
    before = history.freeze(1000.0)
    history.record_pods([sample(0.7, 1e8, 1010.0)], METRICS_API, 1010.0)
    measured = history.freeze(1010.0)
    history.forget_pod(make_pod())
    gone = history.freeze(1010.0)

    assert [view.usage("u1").cpu.fresh for view in (before, measured, gone)] == [0.5, 0.7, None]
