"""The OpenAPI document as JSON, and as a page for people."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from html import escape
from typing import Any

from aiohttp import web

from reactor.web.middleware import json_response
from reactor.web.openapi import DOCUMENT_PATH, Json, openapi_document
from reactor.web.static_files import REVALIDATE, STATIC

PAGE_PATH = "/api/v1/"
_CODE = "`"


def api_document_routes() -> list[web.RouteDef]:
    template = (STATIC / "api.html").read_text("utf-8")

    async def document(_request: web.Request) -> web.Response:
        return json_response(await asyncio.to_thread(openapi_document))

    async def page(_request: web.Request) -> web.Response:
        text = render_api_page(template, await asyncio.to_thread(openapi_document))
        response = web.Response(text=text, content_type="text/html", headers={"Cache-Control": REVALIDATE})
        response.enable_compression()
        return response

    async def to_page(_request: web.Request) -> web.Response:
        raise web.HTTPFound("v1/")

    return [web.get(DOCUMENT_PATH, document), web.get(PAGE_PATH, page), web.get(PAGE_PATH.rstrip("/"), to_page)]


def render_api_page(template: str, document: Json) -> str:
    info, schemas = document["info"], document["components"]["schemas"]
    parts = {
        "@INTRODUCTION@": f"<p>{_text(info['description'])}</p>",
        "@PATHS@": "".join(_path(path, item["get"]) for path, item in document["paths"].items()),
        "@SCHEMAS@": "".join(_schema(name, schema) for name, schema in schemas.items()),
        "@VERSION@": escape(info["version"]),
    }
    for mark, text in parts.items():
        template = template.replace(mark, text)
    return template


def _path(path: str, operation: Json) -> str:
    link = f'<a href="../..{escape(path)}">{escape(path)}</a>' if _can_be_opened(operation) else escape(path)
    described = f"<p>{_text(operation['description'])}</p>" if "description" in operation else ""
    answers = [
        (f"<code>{status}</code>", _text(answer["description"]), _content(answer))
        for status, answer in operation["responses"].items()
        if status != "default"
    ]
    parameters = [
        (f"<code>{escape(one['name'])}</code>", _kind(one["schema"]), _bounds(one), _text(one.get("description", "")))
        for one in operation["parameters"]
    ]
    return (
        f'<article class="panel" id="{escape(operation["operationId"])}">'
        f'<h3><span class="pill">GET</span> <code>{link}</code></h3><p>{_text(operation["summary"])}.</p>{described}'
        f"{_table(('parameter', 'type', 'bounds', 'meaning'), parameters) if parameters else ''}"
        f"{_table(('status', 'when', 'answer'), answers)}</article>"
    )


def _can_be_opened(operation: Json) -> bool:
    return not any(parameter.get("required") for parameter in operation["parameters"])


def _content(answer: Json) -> str:
    """The schema of JSON, else the media type."""
    return ", ".join(
        _kind(content["schema"]) if media == "application/json" else escape(media)
        for media, content in answer["content"].items()
    )


def _bounds(parameter: Json) -> str:
    """In words, such as: 1 to 200, default 50."""
    schema = parameter["schema"]
    words = ["required"] if parameter.get("required") else []
    if "minimum" in schema:
        words.append(f"{schema['minimum']} to {schema['maximum']:,}")
    if "maxLength" in schema:
        words.append(f"at most {schema['maxLength']} characters")
    if "maxItems" in schema:
        words.append(f"at most {schema['maxItems']} times")
    if schema.get("default") not in (None, "", []):
        words.append(f"default {schema['default']}")
    return escape(", ".join(words))


def _schema(name: str, schema: Json) -> str:
    text = f"<p>{_text(schema['description'])}</p>" if "description" in schema else ""
    if "enum" in schema:
        body = f"<p>One of {', '.join(f'<code>{escape(value)}</code>' for value in schema['enum'])}.</p>"
    else:
        rows = [
            (f"<code>{escape(field)}</code>", _kind(kind), _text(kind.get("description", "")))
            for field, kind in schema["properties"].items()
        ]
        body = _table(("field", "type", ""), rows)
    return (
        f'<article class="panel" id="schema-{escape(name)}"><h3><code>{escape(name)}</code></h3>{text}{body}</article>'
    )


def _kind(schema: Mapping[str, Any]) -> str:
    """A type in words, with links to the schemas."""
    if "$ref" in schema:
        name = escape(schema["$ref"].rpartition("/")[2])
        return f'<a href="#schema-{name}">{name}</a>'
    if "anyOf" in schema:
        return " or ".join(_kind(option) for option in schema["anyOf"])
    if "enum" in schema:
        return ", ".join(f"<code>{escape(value) or '(empty)'}</code>" for value in schema["enum"])
    if schema["type"] == "array":
        return f"list of {_kind(schema['items'])}"
    return escape(schema["type"])


def _table(headers: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    head = "".join(f'<th scope="col">{header}</th>' for header in headers)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f'<table class="facts-table"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'


def _text(text: str) -> str:
    """Plain text; what is between backticks is code."""
    parts = escape(text).split(_CODE)
    return "".join(f"<code>{part}</code>" if index % 2 else part for index, part in enumerate(parts))
