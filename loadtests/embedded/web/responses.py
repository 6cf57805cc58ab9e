"""Responses: objects, lists and Status, in JSON."""

from __future__ import annotations

from typing import Any

import msgspec
from aiohttp import web

from loadtests.embedded.api_errors import ApiError, Details, not_acceptable
from loadtests.embedded.resources import Json, Resource

_encode = msgspec.json.Encoder().encode


def raw_answer(body: bytes, code: int = 200) -> web.Response:
    return web.Response(body=body, status=code, content_type="application/json")


def json_answer(obj: Any, code: int = 200) -> web.Response:
    return raw_answer(_encode(obj), code)


def success(code: int, details: Details | None = None) -> web.Response:
    """What creating a binding or an eviction (201) and most deletions (200, no code inside) return."""
    status: Json = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    if details is not None:
        status["details"] = details.as_json()
    if code == 201:
        status["code"] = code
    return json_answer(status, code)


def failure(error: ApiError) -> web.Response:
    answer = json_answer(error.as_status(), error.code)
    if error.details is not None and error.details.retry_after:
        answer.headers["Retry-After"] = str(error.details.retry_after)
    return answer


def list_body(resource: Resource, metadata: Json, items: list[bytes]) -> bytes:
    head = f'{{"kind":"{resource.kind}List","apiVersion":"{resource.api_version}","metadata":'
    return b"".join((head.encode(), _encode(metadata), b',"items":[', b",".join(items), b"]}"))


def list_item(obj: Json) -> bytes:
    """An object as it stands in a list, without kind and apiVersion."""
    return _encode({field: value for field, value in obj.items() if field not in ("kind", "apiVersion")})


def wants_table(request: web.Request) -> bool:
    """Whether the first media type we can serve is a Table; 406 when there is none."""
    accepted = request.headers.get("Accept", "")
    for entry in accepted.split(","):
        kind, *parameters = (part.strip() for part in entry.split(";"))
        given = dict(parameter.partition("=")[::2] for parameter in parameters)
        if kind not in ("", "*/*", "application/*", "application/json"):
            continue
        if given.get("as") == "Table" and given.get("v", "v1") == "v1":
            return True
        if "as" not in given:
            return False
    raise not_acceptable()
