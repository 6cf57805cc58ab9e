from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from loadtests.kubelet.usage import ProbeKind
from loadtests.metrics.prometheus import LabPrometheus
from loadtests.metrics.rates import UsageSampler
from loadtests.metrics.series import LabSeries
from loadtests.workloads.samples import LoadSummary


class Load:
    summary = LoadSummary(100, 3, 0.97, 20.0, 250.0, 900.0)

    def recent(self) -> LoadSummary:
        return self.summary


@pytest.fixture
async def url(clock: Any, kubelet: Any) -> AsyncIterator[str]:
    sampler = UsageSampler([kubelet], clock)
    for used in (0.0, 1.5):
        kubelet.pods = {"web": used, "api": used * 2}
        sampler.sample()
        clock.time += 1
    kubelet.count("web", ProbeKind.LIVENESS, True, 40)
    kubelet.count("web", ProbeKind.LIVENESS, False, 3)
    kubelet.count("web", ProbeKind.READINESS, True, 50)
    prometheus = LabPrometheus(LabSeries([kubelet], sampler, Load()), clock)
    await prometheus.start()
    yield prometheus.url
    await prometheus.stop()


async def ask(url: str, query: str, method: str = "GET") -> tuple[int, Any]:
    params, data = ({"query": query}, None) if method == "GET" else (None, {"query": query})
    async with (
        aiohttp.ClientSession() as session,
        session.request(method, f"{url}/api/v1/query", params=params, data=data) as answer,
    ):
        return answer.status, await answer.json()


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_an_answer_has_the_form_of_the_real_one(url: str, method: str) -> None:
    query = 'prober_probe_total{probe_type="Liveness",result="failed"}'
    status, body = await ask(url, query, method)
    assert status == 200
    assert body == {
        "status": "success",
        "data": {
            "resultType": "vector",
            "result": [
                {
                    "metric": {
                        "__name__": "prober_probe_total",
                        "container": "web",
                        "namespace": "shop",
                        "pod": "web",
                        "pod_uid": "uid-web",
                        "probe_type": "Liveness",
                        "result": "failed",
                    },
                    "value": [1794790002.0, "3"],
                }
            ],
        },
    }


@pytest.mark.parametrize(
    ("query", "values"),
    [
        ('lab_pod_cpu_cores{namespace="shop",pod!="api"}', ["1.5"]),
        ('lab_pod_cpu_cores{pod=~"web|api"}', ["1.5", "3"]),
        ("lab_node_cpu_cores", ["4.5"]),
        ('lab_node_memory_bytes{node="node1"}', ["2097152"]),
        ("lab_pod_memory_bytes", ["1048576", "1048576"]),
        ("lab_availability", ["0.97"]),
        ("lab_latency_p95_seconds", ["0.25"]),
        ("prober_probe_total", ["40", "3", "50"]),
        ("no_such_metric", []),
    ],
)
async def test_metrics(url: str, query: str, values: list[str]) -> None:
    _, body = await ask(url, query)
    assert [item["value"][1] for item in body["data"]["result"]] == values


async def test_a_function_is_refused_as_bad_data(url: str) -> None:
    status, body = await ask(url, "rate(lab_pod_cpu_cores[1m])")
    assert (status, body["status"], body["errorType"]) == (400, "error", "bad_data")
    assert "only instant vector selectors are supported" in body["error"]


async def test_other_paths_say_what_there_is(url: str) -> None:
    async with aiohttp.ClientSession() as session, session.get(f"{url}/api/v1/query_range") as answer:
        assert answer.status == 404
        assert "/api/v1/query" in (await answer.json())["error"]


async def test_without_load_its_series_are_missing_not_zero(clock: Any, kubelet: Any) -> None:
    series = LabSeries([kubelet], UsageSampler([kubelet], clock))
    assert list(series.named("lab_availability")) == []
    assert list(series.named("lab_node_cpu_cores")) == []
    assert "lab_availability" in series.names
