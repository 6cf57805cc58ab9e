"""The extender over HTTP, as kube-scheduler uses it and as nobody should."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from io import BytesIO
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from reactor.errors import InputError
from reactor.extender.messages import Question, parse_question
from reactor.extender.server import MOST_BYTES, Address, serve_extender
from reactor.web.view import Health
from tests.reactor.extender.test_answers import Bench
from tests.support.cluster import make_pending

POD = {
    "metadata": {"name": "web-1", "namespace": "shop", "uid": "u1", "annotations": {"rematch.io/network-bps": "5M"}},
    "spec": {"containers": [{"name": "srv"}]},
}


class _Healthy:
    def live(self) -> Health:
        return Health(ok=True)

    def ready(self) -> Health:
        return Health(ok=False, reasons=("nodes are not listed yet",))


@asynccontextmanager
async def served() -> AsyncIterator[tuple[str, aiohttp.ClientSession, Bench]]:
    bench = Bench()
    registry = CollectorRegistry()
    address = Address("127.0.0.1", 0)
    async with (
        serve_extender(bench.state, _Healthy(), registry, bench.clock, address) as url,
        aiohttp.ClientSession() as session,
    ):
        yield url, session, bench


def arguments(**changes: Any) -> dict[str, Any]:
    return {"Pod": POD, "Nodes": None, "NodeNames": ["node1", "node2", "node3"]} | changes


def test_the_verbs_answer_as_kube_scheduler_reads_it() -> None:
    async def scenario() -> None:
        async with served() as (url, session, bench):
            assert bench.state.asked is None
            async with session.post(f"{url}/prioritize", json=arguments()) as answer:
                assert answer.status == 200
                found = await answer.json()
            assert {each["Host"]: each["Score"] for each in found}["node3"] == 10
            assert all(type(each["Score"]) is int for each in found)
            async with session.post(f"{url}/filter", json=arguments()) as answer:
                assert await answer.json() == {
                    "NodeNames": ["node1", "node2", "node3"],
                    "FailedNodes": {},
                    "Error": "",
                }
            assert bench.state.asked is not None
            async with session.get(f"{url}/metrics") as answer:
                text = await answer.text()
            assert 'rematch_extender_pods_total{judgement="scored"} 1.0' in text
            assert 'rematch_extender_nodes{state="known"} 3.0' in text
            assert 'rematch_extender_seconds_count{verb="filter"} 1.0' in text
            async with session.get(f"{url}/readyz") as answer:
                assert (answer.status, await answer.text()) == (503, "not ok: nodes are not listed yet\n")

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"", "not the ExtenderArgs"),
        (b"[]", "not the ExtenderArgs"),
        (b"\xff\xfe", "not the ExtenderArgs"),
        (b"{}", "Pod: is missing"),
        (json.dumps(arguments(NodeNames=None)).encode(), "nodeCacheCapable: true"),
        (json.dumps(arguments(NodeNames=[1])).encode(), "$.NodeNames[0]"),
        (json.dumps(arguments(Pod={"metadata": {"labels": 3}})).encode(), "$.Pod.metadata.labels"),
        (b'{"Pod":' + b"[" * 100_000, "not the ExtenderArgs"),
    ],
)
def test_what_is_no_question_is_refused_with_the_field(body: bytes, says: str) -> None:
    async def scenario() -> None:
        async with served() as (url, session, _):
            for verb in ("prioritize", "filter"):
                async with session.post(f"{url}/{verb}", data=body) as answer:
                    assert answer.status == 400
                    assert says in (await answer.json())["error"]["message"]
            async with session.get(f"{url}/metrics") as answer:
                assert "rematch_extender_refused_total 2.0" in await answer.text()

    asyncio.run(scenario())


def test_a_body_without_end_is_refused() -> None:
    async def scenario() -> None:
        body = BytesIO(b" " * (MOST_BYTES + 1))
        async with served() as (url, session, _), session.post(f"{url}/prioritize", data=body) as answer:
            assert answer.status == 413

    asyncio.run(scenario())


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
_META = st.dictionaries(
    st.sampled_from(["name", "namespace", "labels", "annotations", "ownerReferences", "uid"]), _JSON
)


@given(
    st.dictionaries(st.sampled_from(["Pod", "NodeNames", "Nodes"]), _JSON | st.fixed_dictionaries({"metadata": _META}))
)
def test_any_json_is_a_question_or_an_input_error(found: dict[str, Any]) -> None:
    bench, question = Bench(), Question(make_pending("web-1"), [])
    with suppress(InputError):
        question = parse_question(json.dumps(found).encode())
    assert len(bench.state.answers.prioritize(question).hosts) == len(question.nodes)
    assert bench.state.answers.filter(question).error == ""


def test_tls_needs_both_files_and_readable_ones(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="need each other"):
        Address("127.0.0.1", 0, certificate=tmp_path / "a").tls()
    with pytest.raises(InputError, match="--tls-cert-file"):
        Address("127.0.0.1", 0, tmp_path / "a", tmp_path / "b").tls()
    assert Address("127.0.0.1", 0).tls() is None
