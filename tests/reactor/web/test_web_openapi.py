"""The OpenAPI document is valid, complete and true: it is compared with what the server serves and answers."""

from __future__ import annotations

import asyncio
import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession
from openapi_schema_validator import OAS31Validator
from openapi_spec_validator import OpenAPIV31SpecValidator, validate
from prometheus_client import CollectorRegistry
from yarl import URL

from reactor.app import Options, open_controller
from reactor.web.openapi import openapi_document
from reactor.web.server import build_app, serve
from reactor.web.view import Health
from storage import StorageError
from tests.reactor.web.small_view import Client, HandClock, SmallHealth, SmallSource
from tests.support.clock import eventually
from tests.support.shop import open_shop

Json = dict[str, Any]
PAGES = {"/", "/pods/{namespace}/{name}", "/static/{name}", "/static/plotly.min.js", "/api/v1/", "/api/v1"}
"""For people; everything else is in the document."""
REQUIRED = {"/api/v1/find": {"name": "web"}, "/api/v1/usage": {"name": "shop/web"}}
OPERATIONS = [(path, item["get"]) for path, item in openapi_document()["paths"].items()]
QUERIED = [(path, operation) for path, operation in OPERATIONS if "400" in operation["responses"]]


def url(path: str) -> str:
    return path.format(namespace="shop", name="web")


def queries(operation: Json) -> list[Json]:
    return [parameter for parameter in operation["parameters"] if parameter["in"] == "query"]


def check(body: object, operation: Json, status: int = 200) -> None:
    """Raises for a body that the document does not describe."""
    answers = operation["responses"]
    schema = answers.get(str(status), answers["default"])["content"]["application/json"]["schema"]
    OAS31Validator(schema | {"components": openapi_document()["components"]}).validate(body)


def test_the_document_is_valid() -> None:
    validate(json.loads(json.dumps(openapi_document())), cls=OpenAPIV31SpecValidator)


def test_every_route_for_programs_is_in_the_document_and_nothing_else() -> None:
    app = build_app(SmallSource(), SmallHealth(), CollectorRegistry(), HandClock())
    served = {route.resource.canonical for route in app.router.routes() if route.resource is not None}
    assert served - PAGES == set(openapi_document()["paths"])


async def test_the_server_serves_the_document(client: Client) -> None:
    answer = await client.get("/api/v1/openapi.json")
    assert answer.content_type == "application/json"
    assert await answer.json() == openapi_document()


@pytest.mark.parametrize(("path", "operation"), OPERATIONS, ids=[path for path, _ in OPERATIONS])
async def test_answers_are_as_described(client: Client, path: str, operation: Json) -> None:
    async with client.get(url(path), params=REQUIRED.get(path, {})) as answer:
        assert answer.status == 200
        assert {answer.content_type} == set(operation["responses"]["200"]["content"])
        if answer.content_type == "application/json":
            check(await answer.json(), operation)


async def test_a_running_controller_answers_as_described(tmp_path: Path) -> None:
    settings = tmp_path / "settings.yaml"
    settings.write_text("mode: act\ntriggers: {evaluationInterval: 1s}\nmetrics: {metricsApi: {interval: 1s}}\n")
    async with open_shop() as shop:
        kubeconfig = str(shop.cluster.kubeconfig(tmp_path / "kubeconfig"))
        options = Options(tmp_path / "rematch.db", kubeconfig, settings_file=settings)
        async with open_controller(options) as live, serve(live, "127.0.0.1", 0) as base, ClientSession(base) as client:
            job = asyncio.create_task(live.run())
            await eventually(lambda: live.controller.state.synced)
            shop.fail("web")
            await eventually(lambda: "Moved" in shop.said())
            await live.controller.store.flush()
            name = shop.pods("web")[0]["metadata"]["name"]
            for path, operation in OPERATIONS:
                url = path.format(namespace="default", name=name)
                async with client.get(url, params=REQUIRED.get(path, {})) as answer:
                    assert {answer.content_type} == set(operation["responses"][str(answer.status)]["content"]), url
                    if answer.content_type == "application/json":
                        check(await answer.json(), operation, answer.status)
            job.cancel()
            await asyncio.gather(job, return_exceptions=True)


async def test_errors_are_as_described(client: Client, source: SmallSource, health: SmallHealth) -> None:
    operations = dict(OPERATIONS)
    overview, pod = operations["/api/v1/overview"], operations["/api/v1/pods/{namespace}/{name}"]
    check(await (await client.get("/api/v1/pods/shop/nobody")).json(), pod, 404)
    source.failure = StorageError("the store is closed")
    check(await (await client.get("/api/v1/overview")).json(), overview, 503)
    check(await (await client.post("/api/v1/overview")).json(), overview, 405)
    health.readiness = Health(ok=False, reasons=("pods are not listed yet",))
    unready = await client.get("/readyz")
    assert {unready.content_type} == set(operations["/readyz"]["responses"][str(unready.status)]["content"])


@pytest.mark.parametrize(("path", "operation"), QUERIED, ids=[path for path, _ in QUERIED])
async def test_the_parameters_are_those_that_the_server_knows(client: Client, path: str, operation: Json) -> None:
    answer = await client.get(url(path), params={"nobodyKnowsThis": "1"})
    body = await answer.json()
    assert answer.status == 400
    check(body, operation, 400)
    described = sorted(parameter["name"] for parameter in queries(operation))
    assert body["error"]["message"] == f"unknown parameter; known here: {', '.join(described) or 'none'}"


def limits(schema: Json) -> tuple[list[list[str]], list[list[str]]]:
    """Values (one or several of a parameter) that are just allowed, and values that are just not."""
    if schema["type"] == "integer":
        low, high = schema["minimum"], schema["maximum"]
        return [[str(low)], [str(high)]], [[str(low - 1)], [str(high + 1)], ["x"]]
    if "enum" in schema:
        return [[value] for value in schema["enum"]], [["nobody says this"]]
    if schema["type"] == "array":
        most, longest = schema["maxItems"], "x" * schema["items"]["maxLength"]
        return [[longest] * most], [["x"] * (most + 1), [longest + "x"]]
    longest = "x" * schema["maxLength"]
    return [[longest]], [[longest + "x"], *([[""]] if schema.get("minLength") else [])]


@pytest.mark.parametrize(("path", "operation"), QUERIED, ids=[path for path, _ in QUERIED])
async def test_the_bounds_of_parameters_are_those_of_the_server(client: Client, path: str, operation: Json) -> None:
    for parameter in queries(operation):
        name = parameter["name"]
        others = [(key, value) for key, value in REQUIRED.get(path, {}).items() if key != name]
        allowed, refused = limits(parameter["schema"])
        for status, cases in ((200, allowed), (400, refused)):
            for values in cases:
                answer = await client.get(url(path), params=[*others, *((name, value) for value in values)])
                assert answer.status == status, (name, values)
        without = await client.get(url(path), params=others)
        assert without.status == (400 if parameter.get("required") else 200)


class Page(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.feed(text)

    def handle_starttag(self, _tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id":
                self.ids.add(value or "")
            elif name in ("href", "src"):
                self.links.append(value or "")


async def test_the_page_lists_every_path_and_schema_and_its_links_work(client: Client) -> None:
    answer = await client.get("/api/v1")
    assert answer.url.path == "/api/v1/"
    text = await answer.text()
    page = Page(text)
    assert "@" not in text, "everything is filled in"
    assert {f"schema-{name}" for name in openapi_document()["components"]["schemas"]} <= page.ids
    for path in openapi_document()["paths"]:
        assert f">{path}</a>" in text or f"<code>{path}</code>" in text
    assert {link[1:] for link in page.links if link.startswith("#")} <= page.ids
    for link in {link for link in page.links if not link.startswith("#")}:
        async with client.get(answer.url.join(URL(link)).path) as target:
            assert target.status == 200, link


async def test_the_dashboard_links_to_the_page(client: Client) -> None:
    assert 'href="./api/v1/"' in await (await client.get("/")).text()
    assert 'href="../../api/v1/"' in await (await client.get("/pods/shop/web")).text()
