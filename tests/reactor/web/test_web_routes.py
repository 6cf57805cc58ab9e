from __future__ import annotations

import threading

import pytest

from reactor.errors import RematchError
from reactor.web.view import Health
from storage import StorageError
from tests.reactor.web.small_view import Client, SmallCluster, SmallHealth, SmallSource


@pytest.mark.parametrize("path", ["/", "/pods/shop/web", "/pods/shop/%3Cimg%20src=x%3E"])
async def test_the_overview_and_the_page_of_a_pod_are_the_same_file(client: Client, path: str) -> None:
    answer = await client.get(path)
    assert answer.status == 200
    assert answer.content_type == "text/html"
    base = "./" if path == "/" else "../../"
    assert f'src="{base}static/app.js"' in await answer.text()


async def test_the_page_never_repeats_what_its_url_says(client: Client) -> None:
    text = await (await client.get("/pods/shop/%3Cscript%3Ealert(1)%3C%2Fscript%3E")).text()
    assert "alert(1)" not in text


async def test_overview_is_camel_case_and_counted(client: Client) -> None:
    answer = await client.get("/api/v1/overview")
    body = await answer.json()
    assert answer.headers["Cache-Control"] == "no-store"
    assert body["totals"]["lowestHappiness"] == 0.5
    assert body["nodes"][0]["counts"] == {"pods": 1, "managed": 1, "unhappy": 1}
    assert body["nodes"][0]["memory"] is None
    assert body["nodes"][0]["pods"][0]["key"] == "shop/<b>web</b>"


async def test_pages_are_made_outside_of_the_event_loop(client: Client) -> None:
    await client.get("/api/v1/overview")
    await client.get("/api/v1/pods")
    assert threading.get_ident() not in SmallCluster.threads


async def test_pods_are_listed_page_by_page(client: Client) -> None:
    body = await (await client.get("/api/v1/pods?limit=5&page=1&search=web&node=n1")).json()
    assert [pod["key"] for pod in body["pods"]] == ["shop/<b>web</b>"]
    assert body["totals"] == {"pods": 1, "managed": 1, "unhappy": 1}


async def test_top_has_usage_request_and_peak(client: Client) -> None:
    body = await (await client.get("/api/v1/top?namespace=shop&sort=memory")).json()
    assert [row["pod"]["key"] for row in body["pods"]] == ["shop/<b>web</b>"]
    cpu, memory = body["pods"][0]["resources"]
    assert (cpu["usage"], cpu["request"], cpu["peak"], memory["usage"]) == (0.25, 0.1, 0.5, None)


@pytest.mark.parametrize(
    ("query", "parameter"),
    [
        ("top?sort=name", "sort"),
        ("pods?limit=501", "limit"),
        ("pods?page=0", "page"),
        ("pods?sort=name", "sort"),
        ("overview?page=x", "page"),
    ],
)
async def test_a_bad_parameter_is_named(client: Client, query: str, parameter: str) -> None:
    answer = await client.get(f"/api/v1/{query}")
    assert answer.status == 400
    assert (await answer.json())["error"]["parameter"] == parameter


async def test_unknown_numbers_are_null_not_nan(client: Client) -> None:
    body = await (await client.get("/api/v1/series")).json()
    assert body["latencyP95"] == [None]
    assert body["nodeCount"] == 0


async def test_decisions_are_fetched_page_by_page(client: Client, source: SmallSource) -> None:
    body = await (await client.get("/api/v1/decisions?limit=2&before=9&waits=false")).json()
    assert source.queries == [(2, 9, False)]
    assert body["decisions"][0]["kind"] == "wait"


async def test_a_pod_is_shown_and_an_unknown_one_is_404(client: Client) -> None:
    assert (await (await client.get("/api/v1/pods/shop/web")).json())["workload"] == "Deployment web"
    missing = await client.get("/api/v1/pods/shop/other")
    assert missing.status == 404
    assert "shop/other" in (await missing.json())["error"]["message"]


@pytest.mark.parametrize("error", [RematchError, StorageError])
async def test_a_failing_source_is_a_503(client: Client, source: SmallSource, error: type[Exception]) -> None:
    source.failure = error("the store is closed")
    answer = await client.get("/api/v1/overview")
    assert answer.status == 503
    assert (await answer.json())["error"]["message"] == "the store is closed"


async def test_health_and_readiness_give_reasons(client: Client, health: SmallHealth) -> None:
    assert await (await client.get("/healthz")).text() == "ok\n"
    health.readiness = Health(ok=False, reasons=("pods are not listed yet", "nodes are not listed yet"))
    answer = await client.get("/readyz")
    assert answer.status == 503
    assert (await answer.text()).splitlines() == ["not ok: pods are not listed yet", "not ok: nodes are not listed yet"]


async def test_metrics_are_in_the_text_format(client: Client) -> None:
    answer = await client.get("/metrics")
    assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    assert "rematch_moves_total 3.0" in await answer.text()


@pytest.mark.parametrize("path", ["/", "/api/v1/overview", "/api/v1/stream", "/metrics", "/healthz", "/static/app.js"])
async def test_head_answers_without_a_body(client: Client, path: str) -> None:
    answer = await client.head(path)
    assert answer.status == 200
    assert await answer.read() == b""


async def test_usage_is_found_by_name(client: Client) -> None:
    body = await (await client.get("/api/v1/usage?name=shop/web&hours=3")).json()
    assert body["axes"][0]["mean"] == [0.5, None]
    assert body["events"] == [{"at": 30.0, "text": "scaled"}]
    assert (await client.get("/api/v1/usage?name=shop/nobody")).status == 404
    assert (await client.get("/api/v1/usage?name=x&hours=100000")).status == 400


async def test_the_calibration_has_bins_and_curves(client: Client) -> None:
    body = await (await client.get("/api/v1/calibration")).json()
    assert body["bins"] == [
        {"begin": 0.95, "end": 1.0, "load": 0.98, "probes": 120.0, "observed": 0.25, "expected": 0.2}
    ]
    assert body["summary"]["movesExpected"] is None
    assert len(body["curve"]["probabilities"]) == len(body["loads"])
