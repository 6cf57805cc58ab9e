"""What a request asks for: the kind and object that its path names, and its bounded JSON body."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec
from aiohttp import web

from loadtests.embedded.api_errors import bad_request, no_such_path, too_large, unsupported_media_type
from loadtests.embedded.resources import NAMESPACES, Resource, at_path

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


@dataclass(frozen=True, slots=True)
class RequestTarget:
    resource: Resource
    namespace: str = ""
    name: str = ""
    subresource: str = ""


def parse_target(path: str) -> RequestTarget:
    """`/api/v1/namespaces/ns/pods/p/eviction` and its like; raises 404 for what is not served."""
    parts = path.strip("/").split("/")
    if "" in parts:
        raise no_such_path()
    if parts[0] == "api" and len(parts) > 2:
        group, version, rest = "", parts[1], parts[2:]
    elif parts[0] == "apis" and len(parts) > 3:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        raise no_such_path()
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2 and not _is_namespace_subresource(group, version, rest):
        namespace, rest = rest[1], rest[2:]
    resource = at_path(group, version, rest[0])
    if resource is None or len(rest) > 3 or (namespace and not resource.namespaced):
        raise no_such_path()
    name = rest[1] if len(rest) > 1 else ""
    subresource = rest[2] if len(rest) > 2 else ""
    if subresource and subresource not in resource.subresources:
        raise no_such_path()
    if name and resource.namespaced and not namespace:
        raise no_such_path()
    return RequestTarget(resource, namespace, name, subresource)


def _is_namespace_subresource(group: str, version: str, rest: list[str]) -> bool:
    return at_path(group, version, rest[0]) == NAMESPACES and len(rest) == 3 and rest[2] in NAMESPACES.subresources
