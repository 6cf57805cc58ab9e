"""metrics.k8s.io: what the lab's server says, directly and behind a real API server's APIService."""

from __future__ import annotations

from loadtests.embedded.plain_client import PlainClient

METRICS = "apis/metrics.k8s.io/v1beta1"


async def test_nodes_and_their_usage(measured_api: PlainClient) -> None:
    listed = await measured_api.get(f"/{METRICS}/nodes")
    assert (listed.status, listed.body["kind"], listed.names) == (200, "NodeMetricsList", ["n1"])
    (item,) = listed.body["items"]
    assert item["usage"] == {"cpu": "500000000n", "memory": "1024Ki"}
    assert item["window"] == "10s"
    assert item["timestamp"].endswith("Z")


async def test_pods_of_all_namespaces_of_one_and_by_label(measured_api: PlainClient) -> None:
    everywhere = await measured_api.get(f"/{METRICS}/pods")
    assert everywhere.names == ["a", "b"]
    assert everywhere.body["items"][0]["containers"][0]["name"] == "c"
    assert (await measured_api.get(f"/{METRICS}/namespaces/one/pods")).names == ["a"]
    assert (await measured_api.get(f"/{METRICS}/pods", labelSelector="app=b")).names == ["b"]


async def test_what_is_not_measured_is_not_found(measured_api: PlainClient) -> None:
    assert (await measured_api.get(f"/{METRICS}/nodes/n1")).body["metadata"]["name"] == "n1"
    missing = await measured_api.get(f"/{METRICS}/nodes/n9")
    assert (missing.status, missing.body["reason"]) == (404, "NotFound")
    assert (await measured_api.get(f"/{METRICS}/widgets")).status == 404
