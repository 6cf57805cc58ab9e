"""What is made of a kubelet's words: rates, scrape targets, another clock's timestamps."""

from __future__ import annotations

import pytest

from loadtests.nodes.apps import AppKind, LabApp, ProbeTimes, deployment
from loadtests.nodes.event_clock import deadline_of, shifted
from loadtests.nodes.kubelet_usage import KubeletRates, KubeletUsage, PodLabels, parse_resource_metrics
from loadtests.nodes.prometheus import scrape_config
from loadtests.workloads.api import Changed, Listed
from tests.support.clock import VirtualClock

TEXT = """\
# HELP container_cpu_usage_seconds_total [STABLE] Cumulative cpu time
container_cpu_usage_seconds_total{{container="web",namespace="shop",pod="web-1"}} {cpu} {at}
container_memory_working_set_bytes{{container="web",namespace="shop",pod="web-1"}} 2.27328e+06 {at}
node_cpu_usage_seconds_total {node} {at}
node_memory_working_set_bytes 5.6438784e+07 {at}
pod_cpu_usage_seconds_total{{namespace="shop",pod="web-1"}} 9 {at}
resource_scrape_error 0
"""
WEB = ("shop", "web-1", "web")


def scrape(cpu: float, node: float, seconds: float) -> str:
    return TEXT.format(cpu=cpu, node=node, at=int(seconds * 1000))


def test_a_rate_lies_between_two_dates_of_the_kubelet() -> None:
    rates = KubeletRates()
    rates.take(parse_resource_metrics(scrape(10.0, 100.0, 1000)))
    assert rates.rates == {}
    rates.take(parse_resource_metrics(scrape(10.0, 100.0, 1000)))
    assert rates.rates == {}
    rates.take(parse_resource_metrics(scrape(11.0, 104.0, 1010)))
    assert rates.rates[WEB].cores == pytest.approx(0.1)
    assert rates.rates["", "", ""].cores == pytest.approx(0.4)
    assert rates.rates[WEB].window == 10


def test_a_counter_that_starts_again_has_no_rate_until_its_next_sample() -> None:
    rates = KubeletRates()
    for cpu, at in ((10.0, 1000), (11.0, 1010), (0.5, 1020)):
        rates.take(parse_resource_metrics(scrape(cpu, cpu, at)))
    assert WEB not in rates.rates
    rates.take(parse_resource_metrics(scrape(1.5, 1.5, 1030)))
    assert rates.rates[WEB].cores == pytest.approx(0.1)


def test_what_the_kubelet_no_longer_tells_is_forgotten() -> None:
    rates = KubeletRates()
    rates.take(parse_resource_metrics(scrape(10.0, 100.0, 1000)))
    rates.take(parse_resource_metrics(scrape(11.0, 104.0, 1010)))
    rates.take(parse_resource_metrics(""))
    assert rates.rates == {}


async def test_usage_grows_old_when_a_kubelet_is_silent() -> None:
    clock = VirtualClock()
    usage = KubeletUsage(dict, clock)
    rates = usage._kubelets["node1"] = KubeletRates()
    now = clock.now()
    rates.take(parse_resource_metrics(scrape(10.0, 100.0, now - 10)))
    rates.take(parse_resource_metrics(scrape(11.0, 104.0, now)))
    (node,), (pod,) = tuple(usage.node_usage()), tuple(usage.pod_usage())
    assert node.name == "node1"
    assert node.cpu_cores == pytest.approx(0.4)
    assert pod.containers[0][1] == pytest.approx(0.1)
    await clock.advance(61)
    assert not list(usage.node_usage())
    assert not list(usage.pod_usage())


def test_pods_are_measured_with_their_labels_while_they_exist() -> None:
    """Autoscalers ask by label."""
    labels = PodLabels()
    pod = {"metadata": {"namespace": "shop", "name": "web-1", "labels": {"app": "web"}}}
    labels.see(Listed((pod,)))
    assert labels.of("shop", "web-1") == (("app", "web"),)
    labels.see(Changed("MODIFIED", {"metadata": {**pod["metadata"], "labels": None}}))
    assert labels.of("shop", "web-1") == ()
    labels.see(Changed("DELETED", pod))
    assert labels.of("shop", "web-1") == ()


def test_another_clock_shifts_every_time_of_an_event() -> None:
    event = {"firstTimestamp": "2026-11-16T06:00:00Z", "lastTimestamp": "2026-11-16T06:01:00Z", "eventTime": None}
    moved = shifted({**event, "count": 3}, 300)
    assert moved["firstTimestamp"] == "2026-11-16T06:05:00Z"
    assert moved["lastTimestamp"] == "2026-11-16T06:06:00Z"
    assert moved["eventTime"] is None
    assert moved["count"] == 3
    assert shifted({"count": 4}, 300) == {"count": 4}
    assert shifted({"eventTime": "2026-11-16T06:00:00.250000Z"}, -60)["eventTime"] == "2026-11-16T05:59:00.250000Z"


def test_only_a_watch_may_last_for_ever() -> None:
    assert deadline_of({"watch": "true", "timeoutSeconds": "400"}).total is None
    assert deadline_of({"watch": "false"}).total is not None
    assert deadline_of({}).total is not None


def test_prometheus_looks_at_three_paths_of_every_kubelet() -> None:
    config = scrape_config({"node1": "10.0.0.1:10255", "node2": "10.0.0.2:10255"}, 2)
    assert {job["metrics_path"] for job in config["scrape_configs"]} == {
        "/metrics/cadvisor",
        "/metrics/resource",
        "/metrics/probes",
    }
    assert config["scrape_configs"][0]["static_configs"][1] == {
        "targets": ["10.0.0.2:10255"],
        "labels": {"node": "node2"},
    }


def test_an_app_is_a_deployment_that_our_scheduler_places() -> None:
    app = LabApp("shop", AppKind.MEMORY, environment={"HASHES": "10"}, probe=ProbeTimes(period=2, failures=5))
    pod = deployment(app, "lab")["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert pod["schedulerName"] == "rematch"
    assert container["args"] == ["memory"]
    assert container["env"] == [{"name": "HASHES", "value": "10"}]
    assert container["livenessProbe"]["periodSeconds"] == 2
    assert container["readinessProbe"]["failureThreshold"] == 5
