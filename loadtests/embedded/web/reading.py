"""GET of one object and of lists, paged and consistent, as JSON or as a Table."""

from __future__ import annotations

import base64
import binascii
from bisect import bisect_right
from dataclasses import dataclass
from itertools import islice

import msgspec
from aiohttp import web

from loadtests.embedded.api_errors import ApiError, bad_request, expired, version_too_large
from loadtests.embedded.resources import Json, Resource
from loadtests.embedded.selectors import Predicate, predicate
from loadtests.embedded.store import Key, ObjectStore, Stored
from loadtests.embedded.tables import table_of
from loadtests.embedded.web.requests import RequestTarget
from loadtests.embedded.web.responses import json_answer, list_body, raw_answer, wants_table

_VERSION_TOO_OLD = "The resourceVersion for the provided list is too old."
_TOKEN_TOO_OLD = (
    "The provided continue parameter is too old to display a consistent list result. "
    "You can start a new list without the continue parameter."
)


class ContinueToken(msgspec.Struct, frozen=True):
    v: str
    rv: int
    start: str


@dataclass(frozen=True, slots=True)
class ListOptions:
    test: Predicate | None
    limit: int = 0
    token: str = ""
    version: int | None = None
    """An exact version when `exact`, else the oldest that will do."""
    exact: bool = False


@dataclass(frozen=True, slots=True)
class ListPage:
    items: list[Stored]
    metadata: Json


def number(request: web.Request, name: str) -> int | None:
    text = request.query.get(name, "")
    if not text:
        return None
    try:
        value = int(text)
    except ValueError as error:
        raise bad_request(f'{name}: parsing "{text}": invalid syntax') from error
    if value < 0:
        raise bad_request(f'{name}: Invalid value: "{text}": must not be negative')
    return value


def list_options(request: web.Request, resource: Resource) -> ListOptions:
    query = request.query
    limit, version = number(request, "limit") or 0, number(request, "resourceVersion")
    match = query.get("resourceVersionMatch", "")
    if match and version is None:
        raise bad_request("resourceVersionMatch is forbidden unless resourceVersion is provided")
    return ListOptions(
        test=predicate(resource, query.get("labelSelector", ""), query.get("fieldSelector", "")),
        limit=limit,
        token=query.get("continue", ""),
        version=version or None,
        exact=match == "Exact" or (not match and limit > 0 and bool(version)),
    )


def answer_get(request: web.Request, store: ObjectStore, target: RequestTarget, now: float) -> web.Response:
    stored = store.get(target.resource, target.namespace, target.name)
    if not wants_table(request):
        return raw_answer(stored.raw)
    metadata = {"resourceVersion": stored.obj["metadata"]["resourceVersion"]}
    include = request.query.get("includeObject", "Metadata")
    return json_answer(table_of(target.resource, [stored.obj], metadata, now, include))


def answer_list(request: web.Request, store: ObjectStore, target: RequestTarget, now: float) -> web.Response:
    resource = target.resource
    page = list_page(store, resource, target.namespace, list_options(request, resource))
    if wants_table(request):
        objects = [stored.obj for stored in page.items]
        include = request.query.get("includeObject", "Metadata")
        return json_answer(table_of(resource, objects, page.metadata, now, include))
    cut = len(f'{{"apiVersion":"{resource.api_version}","kind":"{resource.kind}",')
    return raw_answer(list_body(resource, page.metadata, [b"{" + stored.raw[cut:] for stored in page.items]))


def list_page(store: ObjectStore, resource: Resource, namespace: str, options: ListOptions) -> ListPage:
    version, after = _where_to_start(store, options)
    try:
        snapshot = store.snapshot(resource, version)
    except ApiError as error:
        raise expired(_TOKEN_TOO_OLD if options.token else _VERSION_TOO_OLD) from error
    begin = 0 if after is None else bisect_right(snapshot, after, key=lambda stored: stored.key)
    matching = (
        stored
        for stored in islice(snapshot, begin, None)
        if (not namespace or stored.key[0] == namespace) and (options.test is None or options.test(stored.obj))
    )
    shown_version = store.version if version is None else version
    metadata: Json = {"resourceVersion": str(shown_version)}
    if not options.limit:
        return ListPage(list(matching), metadata)
    page = list(islice(matching, options.limit))
    if next(matching, None) is None:
        return ListPage(page, metadata)
    metadata["continue"] = _token(shown_version, page[-1].key)
    if options.test is None:
        metadata["remainingItemCount"] = _number_after(snapshot, page[-1].key, namespace)
    return ListPage(page, metadata)


def _number_after(snapshot: list[Stored], last: Key, namespace: str) -> int:
    """The objects after `last`, of one namespace if one is given. The snapshot is ordered."""
    begin = bisect_right(snapshot, last, key=lambda stored: stored.key)
    if not namespace:
        return len(snapshot) - begin
    return bisect_right(snapshot, namespace, lo=begin, key=lambda stored: stored.key[0]) - begin


def _where_to_start(store: ObjectStore, options: ListOptions) -> tuple[int | None, Key | None]:
    """The version to show (None is now) and the key of the last object already sent."""
    if options.token:
        if options.version is not None:
            raise bad_request("specifying resource version is not allowed when using continue")
        return _parsed(options.token)
    if options.version is not None and options.version > store.version:
        raise version_too_large(options.version, store.version)
    return (options.version if options.exact else None), None


def _token(version: int, last: Key) -> str:
    token = ContinueToken("meta.k8s.io/v1", version, "/".join((*last, "\0")))
    return base64.urlsafe_b64encode(msgspec.json.encode(token)).decode().rstrip("=")


def _parsed(text: str) -> tuple[int, Key]:
    try:
        raw = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
        token = msgspec.json.decode(raw, type=ContinueToken)
        namespace, name, end = token.start.split("/")
    except (binascii.Error, ValueError, msgspec.DecodeError) as error:
        raise bad_request(f"invalid continue token: continue key is not valid: {error}") from error
    if end != "\0" or token.rv <= 0:
        raise bad_request("invalid continue token: continue key is not valid")
    return token.rv, (namespace, name)
