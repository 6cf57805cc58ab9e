from __future__ import annotations

import asyncio

import pytest

from tests.reactor.web.small_view import Client


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
@pytest.mark.parametrize("path", ["/", "/api/v1/overview", "/nowhere"])
async def test_only_reading_is_offered(client: Client, method: str, path: str) -> None:
    answer = await client.request(method, path)
    assert answer.status == 405
    assert answer.headers["Allow"] == "GET, HEAD"


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8080", "127.0.0.1.evil.example", "", "localhost.", "[::2]:80"]
)
async def test_another_host_name_is_not_served(client: Client, host: str) -> None:
    answer = await client.get("/api/v1/overview", headers={"Host": host})
    assert answer.status in (400, 421)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:9", "localhost", "LOCALHOST:8080", "[::1]", "[::1]:8080"])
async def test_loopback_names_are_served(client: Client, host: str) -> None:
    assert (await client.get("/api/v1/overview", headers={"Host": host})).status == 200


@pytest.mark.parametrize("path", ["/", "/api/v1/overview", "/static/app.js", "/nowhere"])
async def test_every_answer_carries_the_policy(client: Client, path: str) -> None:
    headers = (await client.get(path)).headers
    policy = headers["Content-Security-Policy"]
    assert "default-src 'self'" in policy
    assert "script-src" not in policy
    assert "frame-ancestors 'none'" in policy
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Cross-Origin-Resource-Policy"] == "same-origin"


async def test_unknown_paths_answer_with_json_or_a_page(client: Client) -> None:
    page = await client.get("/nowhere/%3Cscript%3E", headers={"Accept": "text/html"})
    assert (page.status, page.content_type) == (404, "text/html")
    assert "<script>" not in await page.text()
    api = await client.get("/api/v1/nowhere", headers={"Accept": "text/html"})
    assert (api.status, api.content_type) == (404, "application/json")


@pytest.mark.parametrize(
    ("query", "parameter"),
    [
        ("decisions?limit=0", "limit"),
        ("decisions?limit=201", "limit"),
        ("decisions?limit=ten", "limit"),
        ("decisions?limit=-1", "limit"),
        ("decisions?limit=%D9%A3", "limit"),
        ("decisions?limit=1&limit=2", "limit"),
        ("decisions?before=99999999999999999999999", "before"),
        ("decisions?waits=maybe", "waits"),
        ("decisions?offset=3", "offset"),
        ("overview?nodes=5001", "nodes"),
        ("overview?chips=0", "chips"),
        ("overview?match=" + "x" * 254, "match"),
        ("overview?" + "&".join(f"expand=n{number}" for number in range(21)), "expand"),
        ("series?limit=1", "limit"),
    ],
)
async def test_a_wrong_parameter_is_named(client: Client, query: str, parameter: str) -> None:
    answer = await client.get(f"/api/v1/{query}")
    assert answer.status == 400
    error = (await answer.json())["error"]
    assert error["parameter"] == parameter
    assert error["message"]


@pytest.mark.parametrize(
    "request_line",
    [
        b"GET /static/..%2f..%2fapp.py HTTP/1.1",
        b"GET /static/../../../../etc/passwd HTTP/1.1",
        b"GET /api/v1/pods/%ff/%00 HTTP/1.1",
        b"GET /api/v1/overview?match=%ff%fe HTTP/1.1",
        b"GET /pods/" + b"a" * 4000 + b"/b HTTP/1.1",
        b"GET / HTTP/9.9",
        b"NONSENSE",
    ],
)
async def test_hostile_requests_neither_crash_nor_leak(client: Client, request_line: bytes) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", client.port)
    writer.write(request_line + b"\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    answer = await asyncio.wait_for(reader.read(), 5)
    writer.close()
    await writer.wait_closed()
    assert b"root:" not in answer
    assert b"import annotations" not in answer
    assert not answer.startswith(b"HTTP/1.1 500")
    assert (await client.get("/healthz")).status == 200
