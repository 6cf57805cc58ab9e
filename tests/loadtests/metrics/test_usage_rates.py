from __future__ import annotations

from typing import Any

import pytest

from loadtests.embedded.metrics_api import node_metrics, pod_metrics
from loadtests.metrics.rates import LabMetrics, UsageSampler


@pytest.fixture
def sampler(clock: Any, kubelet: Any) -> UsageSampler:
    return UsageSampler([kubelet], clock, window=10)


def tick(sampler: UsageSampler, clock: Any, kubelet: Any, seconds: int, **cores: float) -> None:
    for _ in range(seconds):
        clock.time += 1
        for name, rate in cores.items():
            kubelet.pods[name] = kubelet.pods.get(name, 0.0) + rate
        sampler.sample()


def test_nothing_is_told_before_there_are_two_samples(sampler: UsageSampler) -> None:
    assert sampler.reading().nodes == ()
    sampler.sample()
    assert sampler.reading().nodes == ()


def test_rates_span_the_window(sampler: UsageSampler, clock: Any, kubelet: Any) -> None:
    tick(sampler, clock, kubelet, 20, web=0.5, api=2.0)
    node = sampler.reading().nodes[0]
    assert (node.cores, node.window) == pytest.approx((2.5, 10))
    assert {pod.usage.identity.name: pod.cores for pod in node.pods} == pytest.approx({"web": 0.5, "api": 2.0})


def test_old_use_is_forgotten(sampler: UsageSampler, clock: Any, kubelet: Any) -> None:
    tick(sampler, clock, kubelet, 20, web=4.0)
    tick(sampler, clock, kubelet, 11, web=1.0)
    assert sampler.reading().nodes[0].pods[0].cores == pytest.approx(1)


def test_a_new_pod_has_no_rate_yet_and_then_one_over_its_own_life(
    sampler: UsageSampler, clock: Any, kubelet: Any
) -> None:
    tick(sampler, clock, kubelet, 5, web=1.0)
    tick(sampler, clock, kubelet, 1, new=0.0)
    assert [pod.usage.identity.name for pod in sampler.reading().nodes[0].pods] == ["web"]
    tick(sampler, clock, kubelet, 2, new=3.0)
    rates = {pod.usage.identity.name: (pod.cores, pod.window) for pod in sampler.reading().nodes[0].pods}
    assert rates["new"] == pytest.approx((3, 2))


def test_a_pod_that_left_still_counts_for_the_node(sampler: UsageSampler, clock: Any, kubelet: Any) -> None:
    tick(sampler, clock, kubelet, 5, web=1.0, gone=1.0)
    kubelet.gone += kubelet.pods.pop("gone")
    tick(sampler, clock, kubelet, 1, web=1.0)
    node = sampler.reading().nodes[0]
    assert node.cores == pytest.approx((4 + 4 + 1) / 5)
    assert [pod.usage.identity.name for pod in node.pods] == ["web"]


def test_metrics_api_objects_have_the_real_shape(sampler: UsageSampler, clock: Any, kubelet: Any) -> None:
    tick(sampler, clock, kubelet, 20, web=0.123456789)
    metrics = LabMetrics(sampler)
    (pod,), (node,) = list(metrics.pod_usage()), list(metrics.node_usage())
    body = pod_metrics(pod)
    assert (body["kind"], body["apiVersion"]) == ("PodMetrics", "metrics.k8s.io/v1beta1")
    assert body["metadata"]["name"] == "web"
    assert body["metadata"]["namespace"] == "shop"
    assert body["metadata"]["labels"] == {"app": "web"}
    assert (body["timestamp"], body["window"]) == ("2026-11-16T00:47:00Z", "10s")
    assert body["containers"] == [{"name": "web", "usage": {"cpu": "123456789n", "memory": "1024Ki"}}]
    assert node_metrics(node)["usage"] == {"cpu": "123456789n", "memory": "1024Ki"}
