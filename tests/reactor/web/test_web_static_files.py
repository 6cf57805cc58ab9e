from __future__ import annotations

import asyncio
import re

import pytest

from reactor.web.static_files import STATIC
from tests.reactor.web.small_view import Client

LONGEST_SCRIPT = 250
FORBIDDEN = r"https?://|@import|innerHTML|insertAdjacentHTML|document\.write|\beval\("


async def test_plotly_is_compressed_once_and_kept_for_good(client: Client) -> None:
    plain = {"Accept-Encoding": "gzip"}
    first, second = await asyncio.gather(*(client.get("/static/plotly.min.js", headers=plain) for _ in range(2)))
    assert first.headers["Content-Encoding"] == "gzip"
    assert "immutable" in first.headers["Cache-Control"]
    assert int(first.headers["Content-Length"]) < 2_000_000
    assert await first.read() == await second.read()
    assert b"plotly.js" in (await first.read())[:200]


async def test_plotly_is_sent_uncompressed_without_gzip(client: Client) -> None:
    answer = await client.get("/static/plotly.min.js", headers={"Accept-Encoding": "identity"})
    assert "Content-Encoding" not in answer.headers
    assert len(await answer.read()) > 3_000_000


@pytest.mark.parametrize("path", ["/static/plotly.min.js", "/static/app.js"])
async def test_a_known_version_is_answered_with_304(client: Client, path: str) -> None:
    tag = (await client.head(path)).headers["ETag"]
    again = await client.get(path, headers={"If-None-Match": tag})
    assert (again.status, await again.read()) == (304, b"")
    assert (await client.get(path, headers={"If-None-Match": '"other"'})).status == 200


async def test_the_page_names_the_version_of_plotly(client: Client) -> None:
    tag = (await client.head("/static/plotly.min.js")).headers["ETag"].strip('"')
    assert f'name="plotly" content="{tag}"' in await (await client.get("/")).text()


async def test_scripts_have_a_type_that_modules_need(client: Client) -> None:
    for path in STATIC.glob("*.js"):
        answer = await client.get(f"/static/{path.name}")
        assert answer.content_type == "text/javascript"


async def test_nothing_is_loaded_from_elsewhere() -> None:
    for path in STATIC.iterdir():
        text = path.read_text("utf-8").replace("http://www.w3.org/2000/svg", "")
        assert not re.search(FORBIDDEN, text), path.name


async def test_scripts_stay_small() -> None:
    assert {path.name for path in STATIC.glob("*.js") if len(path.read_text().splitlines()) > LONGEST_SCRIPT} == set()
