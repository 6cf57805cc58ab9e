"""Requests that mean harm, or were made by mistake: each gets a Status, and the server goes on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import aiohttp
import pytest

from loadtests.embedded import ClusterOptions, EmbeddedCluster
from loadtests.embedded.plain_client import JSON_PATCH, MERGE, STRATEGIC, PlainClient

PODS = "/api/v1/namespaces/default/pods"
POD = b'{"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i"}]}}'


@pytest.fixture(autouse=True)
async def still_serving(client: PlainClient) -> AsyncIterator[None]:
    yield
    assert (await client.get("/readyz")).body == {"text": "ok"}


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"3",
        b'"x"',
        b"[]",
        b"{",
        b"\xff\xfe",
        b'{"metadata":null}',
        b'{"metadata":"x"}',
        b'{"metadata":{"name":5}}',
        b'{"metadata":{"name":"p","labels":{"a":1}}}',
        b'{"metadata":{"name":"p","ownerReferences":[{}]}}',
        b'{"metadata":{"name":"p"},"spec":[]}',
        b'{"metadata":{"name":"p"},"spec":{"containers":[7]}}',
        b'{"metadata":{"name":"p"},"spec":{"containers":[{"resources":{"requests":{"cpu":"lots"}}}]}}',
        b'{"metadata":{"name":"p"},"spec":{"tolerations":[{"key":[]}]}}',
        b'{"kind":"Secret","apiVersion":"v1"}',
        b'{"apiVersion":"v9"}',
    ],
)
async def test_bodies_that_are_no_pod_are_refused(client: PlainClient, body: bytes) -> None:
    answer = await client.call("POST", PODS, body)
    assert answer.status in (400, 422)
    assert (answer.body["kind"], answer.body["status"], answer.body["code"]) == ("Status", "Failure", answer.status)
    assert answer.body["message"]


@pytest.mark.parametrize("opening", [b"[", b'{"a":'])
async def test_json_that_is_nested_too_deep_is_refused(client: PlainClient, opening: bytes) -> None:
    closing = b"]" if opening == b"[" else b"1}"
    for depth in (150, 100_000):
        body = b'{"metadata":{"name":"p"},"spec":' + opening * depth + closing * depth + b"}"
        answer = await client.call("POST", PODS, body)
        assert (answer.status, answer.body["reason"]) == (400, "BadRequest")


async def test_a_body_over_the_limit_is_refused(client: PlainClient) -> None:
    answer = await client.call("POST", PODS, b'{"a":"' + b"x" * 4_000_000 + b'"}')
    assert (answer.status, answer.body["reason"]) == (413, "RequestEntityTooLarge")


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/api",
        "/apis/",
        "/api/v2/pods",
        "/apis/apps/v1beta1/deployments",
        "/api/v1/namespaces/default/pods/p/log/x",
        "/api/v1/namespaces/default/pods/p/exec",
        "/api/v1/namespaces/default/nodes",
        "/api/v1/pods/p",
        "/api/v1/%2e%2e/%2e%2e/etc/passwd",
        "/api/v1/namespaces//pods",
        "/openapi/v2",
        "/openapi/v3",
    ],
)
async def test_paths_that_are_not_served(client: PlainClient, path: str) -> None:
    answer = await client.get(path)
    if path in ("/api", "/apis/"):
        assert answer.status == 200
    else:
        assert answer.status == 404
        assert answer.body["reason"] == "NotFound"


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"])
async def test_methods_that_make_no_sense(client: PlainClient, method: str) -> None:
    answer = await client.call(method, "/apis/metrics.k8s.io/v1beta1/nodes")
    assert (answer.status, answer.body["reason"]) == (405, "MethodNotAllowed")


@pytest.mark.parametrize(
    "query",
    [
        {"limit": "-1"},
        {"limit": "x"},
        {"resourceVersion": "-5"},
        {"continue": "e30"},
        {"continue": "%%%"},
        {"labelSelector": "a=b=c"},
        {"labelSelector": "((("},
        {"labelSelector": "a in (b"},
        {"fieldSelector": "=x"},
        {"fieldSelector": "status.phase"},
        {"resourceVersionMatch": "Exact"},
        {"watch": "1", "timeoutSeconds": "soon"},
        {"watch": "1", "sendInitialEvents": "true"},
    ],
)
async def test_queries_that_cannot_be_understood(client: PlainClient, query: dict[str, str]) -> None:
    answer = await client.get(PODS, **query)
    assert (answer.status, answer.body["reason"]) == (400, "BadRequest")


@pytest.mark.parametrize(
    ("kind", "patch"),
    [
        (MERGE, b"[]"),
        (MERGE, b"x"),
        (MERGE, b'{"spec":5}'),
        (MERGE, b'{"metadata":5}'),
        (MERGE, b'{"metadata":null}'),
        (JSON_PATCH, b"{}"),
        (JSON_PATCH, b"[1]"),
        (JSON_PATCH, b'[{"op":"add"}]'),
        (JSON_PATCH, b'[{"op":"add","path":"","value":1}]'),
        (JSON_PATCH, b'[{"op":"add","path":"/spec/containers/9","value":1}]'),
        (JSON_PATCH, b'[{"op":"add","path":"/metadata/name/x","value":1}]'),
        (JSON_PATCH, b'[{"op":"remove","path":"/spec/containers/-1"}]'),
        (JSON_PATCH, b'[{"op":"jump","path":"/a","from":"/spec"}]'),
        (STRATEGIC, b"[]"),
        (STRATEGIC, b'{"spec":{"containers":[{"image":"x"}]}}'),
        (STRATEGIC, b'{"spec":{"$patch":"explode"}}'),
        (STRATEGIC, b'{"$deleteFromPrimitiveList/x":5}'),
        ("application/apply-patch+yaml", b"kind: Pod"),
        ("text/plain", b"{}"),
    ],
)
async def test_patches_that_make_no_sense(client: PlainClient, kind: str, patch: bytes) -> None:
    assert (await client.call("POST", PODS, POD)).status == 201
    answer = await client.call("PATCH", f"{PODS}/p", patch, kind)
    assert answer.status in (400, 415, 422), answer.body
    assert answer.body["kind"] == "Status"


async def test_server_side_apply_says_what_works(client: PlainClient) -> None:
    assert (await client.call("POST", PODS, POD)).status == 201
    answer = await client.call("PATCH", f"{PODS}/p", b"kind: Pod", "application/apply-patch+yaml")
    assert answer.status == 415
    assert "kubectl create" in answer.body["message"]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("binding", b"[]"),
        ("binding", b'{"metadata":5}'),
        ("binding", b'{"metadata":{"name":"p"},"target":"n"}'),
        ("eviction", b"[]"),
        ("eviction", b'{"metadata":[]}'),
        ("eviction", b'{"kind":"Pod","metadata":{"name":"p"}}'),
        ("eviction", b'{"apiVersion":"v1","metadata":{"name":"p"}}'),
        ("eviction", b'{"metadata":{"name":"p"},"deleteOptions":[1]}'),
        ("eviction", b'{"metadata":{"name":"p"},"deleteOptions":{"preconditions":7}}'),
        ("eviction", b'{"metadata":{"name":"p"},"deleteOptions":{"gracePeriodSeconds":"x"}}'),
    ],
)
async def test_subresources_with_bodies_that_make_no_sense(client: PlainClient, path: str, body: bytes) -> None:
    assert (await client.call("POST", PODS, POD)).status == 201
    answer = await client.call("POST", f"{PODS}/p/{path}", body)
    assert answer.status in (400, 422, 500)
    assert answer.body["kind"] == "Status"
    assert (await client.get(f"{PODS}/p")).body["status"]["phase"] == "Pending"


async def test_a_scale_that_makes_no_sense(client: PlainClient, cluster: EmbeddedCluster) -> None:
    path = "/apis/apps/v1/namespaces/default/deployments"
    template = b'"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}'
    body = b'{"metadata":{"name":"d"},"spec":{"replicas":0,"selector":{"matchLabels":{"a":"b"}},' + template + b"}}"
    assert (await client.call("POST", path, body)).status == 201
    for wrong, code in ((b"[]", 400), (b'{"spec":{"replicas":"x"}}', 400), (b'{"spec":{"replicas":-1}}', 422)):
        assert (await client.call("PUT", f"{path}/d/scale", wrong)).status == code
    assert (await client.call("POST", f"{path}/d/scale", b"{}")).status == 405


async def test_a_token_is_asked_for_where_one_is_set() -> None:
    async with EmbeddedCluster(ClusterOptions(token="s3cret")) as cluster, aiohttp.ClientSession() as session:
        for headers, code in (
            ({}, 401),
            ({"Authorization": "Bearer wrong"}, 401),
            ({"Authorization": "Bearer s3cret"}, 200),
        ):
            async with session.get(f"{cluster.url}/api/v1/nodes", headers=headers) as response:
                assert response.status == code
        async with session.get(f"{cluster.url}/readyz") as response:
            assert response.status == 200


async def test_a_watcher_that_hangs_up_leaves_nothing_behind(client: PlainClient) -> None:
    before = len(asyncio.all_tasks())
    for _ in range(5):
        async with client.session.get(f"{client.url}{PODS}?watch=1") as response:
            assert response.status == 200
            response.close()
    for _ in range(200):
        if len(asyncio.all_tasks()) <= before:
            break
        await asyncio.sleep(0.01)
    assert len(asyncio.all_tasks()) <= before
