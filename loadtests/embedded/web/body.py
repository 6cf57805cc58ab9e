"""Request bodies: bounded, JSON, and never a reason to fall over."""

from __future__ import annotations

from typing import Any

import msgspec
from aiohttp import web

from loadtests.embedded.api_errors import bad_request, too_large, unsupported_media_type

LIMIT = 3 * 1024 * 1024
"""The real server's limit."""

_ONLY_JSON = (
    "the body of the request was in an unknown format - accepted media types include: application/json "
    "(kubectl create KIND sends protobuf, which is not read here: use kubectl create -f FILE --validate=false)"
)
_decode = msgspec.json.Decoder().decode


async def read_bytes(request: web.Request) -> bytes:
    try:
        return await request.read()
    except web.HTTPRequestEntityTooLarge as error:
        raise too_large(LIMIT) from error


async def read_json(request: web.Request) -> Any:
    """The body of a create or an update; kubectl's own patches come through `read_patch`."""
    if request.content_type not in ("application/json", "application/octet-stream", ""):
        raise unsupported_media_type(_ONLY_JSON)
    return decode(await read_bytes(request))


def decode(raw: bytes) -> Any:
    try:
        return _decode(raw)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise bad_request(f"the object provided is unrecognized: json parse error: {error}") from error
