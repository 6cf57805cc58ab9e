"""The OpenAPI document of the routes for programs, made from the types that the handlers read and answer with."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from itertools import pairwise
from textwrap import dedent
from typing import Any

import msgspec
from msgspec import NODEFAULT, Struct

from reactor.record.usage_reader import UsageDocument
from reactor.web.api import METRICS_TYPE
from reactor.web.middleware import STREAM_PATH, ErrorAnswer
from reactor.web.query import DecisionsQuery, FindQuery, NoQuery, OverviewQuery, PodsQuery, TopQuery, UsageQuery
from reactor.web.view import CalibrationView, Decisions, FoundPods, Overview, PodPage, PodView, Series, TopPage

Json = dict[str, Any]

DOCUMENT_PATH = "/api/v1/openapi.json"
_SCHEMA = "#/components/schemas/{name}"
_BOUNDS = {"ge": "minimum", "le": "maximum"}
"""pydantic's names for the bounds of a number that a validator has read from text."""
_INTRODUCTION = """The read-only API of a Rematch controller. It answers GET and HEAD.
Times are seconds since the epoch. A value that is not known is null, never 0. Text may come from the cluster: show it
as plain text. A parameter that is unknown, repeated or out of its bounds is an error that names it.
Fields may be added; the meaning of a field does not change within v1."""


@dataclass(frozen=True, slots=True)
class Operation:
    path: str
    summary: str
    answer: type[Struct] | None = None
    """None: `media_type` says what it is."""
    media_type: str = "application/json"
    query: type[NoQuery] | None = NoQuery
    """None: the handler does not look at the query."""
    description: str = ""
    not_found: str = ""
    """When the answer is 404; empty if it never is."""
    unready: str = ""
    """When the answer is 503 with a plain text."""


OPERATIONS = (
    Operation(
        "/api/v1/overview", "Nodes with their pods, what is wrong, and the settings", Overview, query=OverviewQuery
    ),
    Operation("/api/v1/series", "Measurements over time, as columns for charts", Series),
    Operation("/api/v1/calibration", "Failed probes by node load, observed and expected", CalibrationView),
    Operation(
        "/api/v1/decisions", "Decisions, plans, moves and settings, newest first", Decisions, query=DecisionsQuery
    ),
    Operation("/api/v1/pods", "Pods page by page, the worst first", PodPage, query=PodsQuery),
    Operation(
        "/api/v1/pods/{namespace}/{name}",
        "A pod: its happiness, the evidence, the decision, and why it is on its node",
        PodView,
        not_found="There is no such pod.",
    ),
    Operation("/api/v1/top", "Pods with usage, request and peak, page by page", TopPage, query=TopQuery),
    Operation(
        "/api/v1/find", "Pods by name, by the beginning of a name, or by their workload", FoundPods, query=FindQuery
    ),
    Operation(
        "/api/v1/usage",
        "What a pod, workload or node used, over time",
        UsageDocument,
        query=UsageQuery,
        not_found="No usage of such a name is recorded.",
    ),
    Operation(
        STREAM_PATH,
        "Server-sent events that say when to fetch again",
        media_type="text/event-stream",
        query=None,
        description="`hello` at first, `change` after a change (at most two per second), `heartbeat` in between. The"
        " data of each is a JSON object with the `version` of the state; that of `hello` also has the seconds between"
        " heartbeats.",
    ),
    Operation(DOCUMENT_PATH, "This document", query=None),
    Operation("/healthz", "Whether the process is alive", media_type="text/plain", query=None, unready="It is not."),
    Operation(
        "/readyz",
        "Whether everything is listed and watched",
        media_type="text/plain",
        query=None,
        unready="It is not; a line for each reason.",
    ),
    Operation("/metrics", "Prometheus metrics", media_type=METRICS_TYPE.partition(";")[0], query=None),
)


@cache
def openapi_document() -> Json:
    """The first call reads the sources of the types, which takes too long for the event loop."""
    answers = [operation.answer for operation in OPERATIONS if operation.answer is not None]
    _, schemas = msgspec.json.schema_components([*answers, ErrorAnswer], ref_template=_SCHEMA)
    return {
        "openapi": "3.1.1",
        "info": {
            "title": "Rematch",
            "version": version("rematch"),
            "description": _INTRODUCTION,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "../../", "description": "Where this document was read from"}],
        "paths": {operation.path: {"get": _operation(operation)} for operation in OPERATIONS},
        "components": {"schemas": _described(schemas, [*answers, ErrorAnswer])},
    }


def _operation(operation: Operation) -> Json:
    description = {"description": operation.description} if operation.description else {}
    return {
        "operationId": _identifier(operation.path),
        "summary": operation.summary,
        **description,
        "parameters": [*_path_parameters(operation.path), *_query_parameters(operation.query)],
        "responses": _responses(operation),
    }


def _identifier(path: str) -> str:
    """`/api/v1/pods/{namespace}/{name}` is getPodsNamespaceName."""
    words = re.findall(r"[a-zA-Z]+", path.removeprefix("/api/v1"))
    return "get" + "".join(word.capitalize() for word in words)


def _path_parameters(path: str) -> Iterable[Json]:
    for name in re.findall(r"{(\w+)}", path):
        schema = {"type": "string", "minLength": 1}
        yield {"name": name, "in": "path", "required": True, "schema": schema}


def _query_parameters(query: type[NoQuery] | None) -> Iterable[Json]:
    if query is None:
        return
    schema = query.model_json_schema()
    for name, field in schema.get("properties", {}).items():
        described = {"description": field["description"]} if "description" in field else {}
        required = {"required": True} if name in schema.get("required", ()) else {}
        explode = {"style": "form", "explode": True} if field.get("type") == "array" else {}
        yield {"name": name, "in": "query", **required, **described, **explode, "schema": _parameter_schema(field)}


def _parameter_schema(field: Mapping[str, Any]) -> Json:
    """Without pydantic's title, and without null, which a query cannot say."""
    given = [option for option in field.get("anyOf", ()) if option.get("type") != "null"]
    schema = {**field, **(given[0] if given else {})}
    left_out = {"title", "description", "anyOf", *(("default",) if schema.get("default") is None else ())}
    return {_BOUNDS.get(key, key): value for key, value in schema.items() if key not in left_out}


def _responses(operation: Operation) -> Json:
    responses: Json = {"200": {"description": operation.summary, "content": _content(operation)}}
    if operation.query is not None:
        responses["400"] = _error("A parameter is wrong; `parameter` names it.")
    if operation.not_found:
        responses["404"] = _error(operation.not_found)
    if operation.unready:
        responses["503"] = {"description": operation.unready, "content": _content(operation)}
    elif operation.path.startswith("/api/"):
        responses["503"] = _error("The store or the cluster does not answer, or too many connections are open.")
    return responses | {"default": _error("Any other error.")}


def _content(operation: Operation) -> Json:
    if operation.answer is not None:
        return {operation.media_type: {"schema": {"$ref": _SCHEMA.format(name=operation.answer.__name__)}}}
    return {operation.media_type: {"schema": {"type": "object" if "json" in operation.media_type else "string"}}}


def _error(description: str) -> Json:
    schema = {"$ref": _SCHEMA.format(name=ErrorAnswer.__name__)}
    return {"description": description, "content": {"application/json": {"schema": schema}}}


def _described(schemas: Json, roots: Iterable[type[Struct]]) -> Json:
    """With the docstrings of the fields. Answers have every field, also those with a default in Python."""
    kinds = _structs(roots)
    return {name: _with_fields(schema, kinds[name]) if name in kinds else schema for name, schema in schemas.items()}


def _with_fields(schema: Json, kind: type[Struct]) -> Json:
    names = dict(zip(kind.__struct_fields__, kind.__struct_encode_fields__, strict=True))
    texts = _field_docstrings(kind)
    optional = {field.encode_name for field in _fields(kind) if _may_be_left_out(field)}
    properties = {}
    for name, encoded in names.items():
        field = {key: value for key, value in schema["properties"][encoded].items() if key != "default"}
        properties[encoded] = field | ({"description": _in_json(texts[name], names)} if name in texts else {})
    required = [encoded for encoded in names.values() if encoded not in optional]
    text = {"description": _in_json(schema["description"], names)} if "description" in schema else {}
    return {**schema, **text, "properties": properties, "required": required}


def _in_json(text: str, names: Mapping[str, str]) -> str:
    """Docstrings say what the Python names and values are; the document says what JSON has."""
    for name, encoded in names.items():
        text = text.replace(f"`{name}`", f"`{encoded}`")
    return re.sub(r"\bNone\b", "null", " ".join(text.split()))


def _field_docstrings(kind: type[Struct]) -> dict[str, str]:
    (tree,) = ast.parse(dedent(inspect.getsource(kind))).body
    body = tree.body if isinstance(tree, ast.ClassDef) else []
    found = {}
    for field, text in pairwise(body):
        if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant):
            found[ast.unparse(field.target)] = str(text.value.value)
    return found


def _fields(kind: type[Struct]) -> Iterable[msgspec.inspect.Field]:
    info = msgspec.inspect.type_info(kind)
    assert isinstance(info, msgspec.inspect.StructType)
    return info.fields


def _may_be_left_out(field: msgspec.inspect.Field) -> bool:
    """A field that is UNSET has no default and is not required."""
    return not field.required and field.default is NODEFAULT and field.default_factory is NODEFAULT


def _structs(kinds: Iterable[type[Struct]]) -> dict[str, type[Struct]]:
    """These types and the types of their fields, by name."""
    found: dict[str, type[Struct]] = {}
    waiting: list[msgspec.inspect.Type] = [msgspec.inspect.type_info(kind) for kind in kinds]
    while waiting:
        kind = waiting.pop()
        if isinstance(kind, msgspec.inspect.StructType):
            if kind.cls.__name__ not in found:
                found[kind.cls.__name__] = kind.cls
                waiting += [field.type for field in kind.fields]
        elif isinstance(kind, msgspec.inspect.UnionType):
            waiting += kind.types
        elif isinstance(kind, msgspec.inspect.VarTupleType):
            waiting.append(kind.item_type)
    return found
