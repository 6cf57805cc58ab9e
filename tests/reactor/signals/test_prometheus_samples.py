from __future__ import annotations

import math
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactor.signals.measurements import ProbeCounter
from reactor.signals.prometheus import namespace_matchers, split_query
from reactor.signals.prometheus_samples import (
    VectorSample,
    longest_range,
    node_name,
    node_usage,
    parse_vector,
    pod_usage,
    probe_counters,
    single_value,
    throttling,
)

WEB = {"namespace": "default", "pod": "web-1"}


def series(value: float, at: float = 1000.0, **labels: str) -> VectorSample:
    return VectorSample({**WEB, **labels}, value, at)


def test_missing_axes_are_none_and_the_older_time_counts() -> None:
    both = pod_usage([series(0.5, 1000.0)], [series(1e8, 990.0)])
    assert (both[0].cpu, both[0].memory, both[0].at) == (0.5, 1e8, 990.0)
    assert pod_usage([series(0.5)], [])[0].memory is None
    assert pod_usage([], [series(1e8)])[0].cpu is None


def test_duplicates() -> None:
    assert pod_usage([series(0.50), series(0.51)], [])[0].cpu == 0.51, "one thing scraped twice"
    contradiction = pod_usage([series(0.5), series(0.9)], [])[0].cpu
    assert contradiction is not None
    assert math.isnan(contradiction)
    broken = pod_usage([series(0.5), series(math.nan)], [])[0].cpu
    assert broken is not None
    assert math.isnan(broken)
    assert pod_usage([VectorSample({"pod": "x"}, 1.0, 0.0)], []) == []


@pytest.mark.parametrize(
    ("labels", "name"),
    [
        ({"node": "node1", "instance": "10.0.0.1:10250"}, "node1"),
        ({"kubernetes_node": "n2"}, "n2"),
        ({"instance": "10.0.0.1:9100"}, "10.0.0.1"),
        ({"instance": "[fd00::1]:9100"}, "fd00::1"),
        ({"instance": "fd00::1"}, "fd00::1"),
        ({"instance": "worker.example.org"}, "worker.example.org"),
        ({}, ""),
    ],
)
def test_node_names(labels: dict[str, str], name: str) -> None:
    assert node_name(labels) == name
    assert [sample.node for sample in node_usage([VectorSample(labels, 1.0, 0.0)], [])] == ([name] if name else [])


def test_recorded_probe_counters(kubelet_data: Path) -> None:
    vector = []
    for line in (kubelet_data / "probes.txt").read_text().splitlines():
        if 'probe_type="Liveness"' in line:
            name, _, value = line.rpartition(" ")
            vector.append(VectorSample(dict(re.findall(r'(\w+)="([^"]*)"', name)), float(value), 1000.0))
    counters = {counter.pod.split("-")[0]: counter for counter in probe_counters(vector)}
    assert {app: (counter.successes, counter.failures) for app, counter in counters.items()} == {
        "hang": (25, 3),
        "sick": (0, 56),
        "web": (19, 9),
    }
    assert counters["sick"].uid == "8b4e8d8c-dbb7-4ed7-8bd0-c6c080bf1142"


def test_probe_counters_reported_twice() -> None:
    twice = [
        series(3, container="srv", result="failed", pod_uid="u"),
        series(4, container="srv", result="failed", pod_uid="u"),
    ]
    assert probe_counters(twice) == [ProbeCounter("default", "web-1", "srv", 0.0, 4.0, 1000.0, "u")]
    without_uid = [series(3, container="srv", result="failed"), series(9, container="srv", result="failed")]
    assert probe_counters(without_uid) == [], "two pods of one name cannot be told apart"
    assert probe_counters([series(math.nan, container="srv", result="failed")]) == []


def test_other_answers() -> None:
    assert throttling([series(0.25)])[0].share == 0.25
    assert single_value([series(0.99)]) == 0.99
    assert single_value([]) is None
    assert single_value([series(math.nan)]) is None
    assert single_value([series(1), series(2)]) is None
    assert parse_vector("availability", [1000.0, "0.5"])[0].value == 0.5
    assert parse_vector("pod_cpu", [{"metric": {}, "value": [1.0, "+Inf"]}])[0].value == math.inf


def test_longest_range() -> None:
    assert longest_range("rate(x[2m]) / rate(y[1m30s]) + max_over_time(z[3m:15s])") == 180.0
    assert longest_range("x") == 0.0


def test_few_pods_are_one_query() -> None:
    assert namespace_matchers({"a": 5, "b": 5}, 100) == ['namespace!=""']
    assert split_query("up", ["x", "y"]) == ["up"]
    assert split_query("m{$namespaces}", ["x", "y"]) == ["m{x}", "m{y}"]
    assert namespace_matchers({'a"b.c': 101}, 100) == ['namespace=~"a\\"b\\\\.c"']


@given(
    st.dictionaries(
        st.from_regex(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", fullmatch=True), st.integers(1, 300), max_size=80
    )
)
def test_every_namespace_is_asked_for_once(pods: dict[str, int]) -> None:
    parts = namespace_matchers(pods, 100)
    if sum(pods.values()) <= 100:
        assert parts == ['namespace!=""']
        return
    asked = [part.removeprefix('namespace=~"').removesuffix('"').split("|") for part in parts]
    assert sorted(name for names in asked for name in names) == sorted(pods)
    assert all(len(names) == 1 or sum(pods[name] for name in names) <= 100 for names in asked)
