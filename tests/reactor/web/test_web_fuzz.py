"""Every path and parameter of the OpenAPI document with hostile values: never a 5xx, always what the document says."""

from __future__ import annotations

import asyncio
from typing import Any
from urllib.parse import quote

import msgspec
import pytest
from aiohttp.test_utils import TestClient, TestServer
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry
from yarl import URL

from reactor.web.middleware import STREAM_PATH, ErrorAnswer
from reactor.web.openapi import OPERATIONS as DECLARED
from reactor.web.openapi import openapi_document
from reactor.web.server import build_app
from tests.reactor.web.small_view import HandClock, SmallHealth, SmallSource

DOCUMENT = openapi_document()
OPERATIONS = [(path, item["get"]) for path, item in DOCUMENT["paths"].items() if path != STREAM_PATH]
ANSWERS = {operation.path: operation.answer or dict[str, Any] for operation in DECLARED}
"""The types that the document's schemas are made from."""
HOSTILE = st.one_of(
    st.sampled_from(["", "0", "-1", "1e9", "NaN", "9" * 40, "true", "null", "..", "%", "<script>", "' OR 1=1", "\x00"]),
    st.text(max_size=40),
    st.integers().map(str),
)


@st.composite
def requests(draw: st.DrawFn) -> tuple[str, str]:
    """A path of the document, and the path with its parameters and query filled in."""
    path, operation = draw(st.sampled_from(OPERATIONS))
    filled, query = path, []
    for parameter in operation["parameters"]:
        if parameter["in"] == "path":
            value = draw(HOSTILE.filter(lambda text: text not in ("", ".", "..")))
            filled = filled.replace(f"{{{parameter['name']}}}", quote(value, safe="", errors="replace"))
        elif draw(st.booleans()):
            query += [f"{parameter['name']}={quote(v, errors='replace')}" for v in draw(st.lists(HOSTILE, max_size=2))]
    query += draw(st.lists(HOSTILE.map(lambda text: quote(text, errors="replace")), max_size=2))
    return path, f"{filled}?{'&'.join(query)}"


@pytest.mark.timeout(120)
def test_no_request_breaks_the_api_or_its_document() -> None:
    loop = asyncio.new_event_loop()
    app = build_app(SmallSource(), SmallHealth(), CollectorRegistry(), HandClock())
    client = TestClient(TestServer(app, host="127.0.0.1", loop=loop), loop=loop)
    loop.run_until_complete(client.start_server())

    @given(requests())
    @settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
    def check(request: tuple[str, str]) -> None:
        loop.run_until_complete(_check(client, *request))

    try:
        check()
    finally:
        loop.run_until_complete(client.close())
        loop.close()


async def _check(client: TestClient[Any, Any], path: str, filled: str) -> None:
    answer = await client.get(URL(filled, encoded=True))
    assert answer.status < 500, filled
    responses = DOCUMENT["paths"][path]["get"]["responses"]
    described = responses.get(str(answer.status), responses["default"])["content"]
    assert answer.content_type in described, (filled, answer.status)
    if answer.content_type == "application/json":
        types = ANSWERS[path] if answer.status == 200 else ErrorAnswer
        msgspec.json.decode(await answer.read(), type=types)
