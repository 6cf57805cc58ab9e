"""Merge patch, JSON patch and strategic merge patch, as pure functions from an object and a patch to a new object."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from loadtests.embedded.api_errors import ApiError, Details, bad_request, unsupported_media_type
from loadtests.embedded.resources import Json
from loadtests.embedded.strategic_merge import strategic_merge

APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"

_APPLY_REFUSED = (
    "server-side apply is not served by this embedded API server; what works: kubectl create, replace, patch "
    "(--type=merge|json|strategic), label, annotate, scale, cordon, drain, delete"
)


def apply_patch(content_type: str, obj: Json, patch: Any) -> Json:
    if content_type == APPLY or content_type.startswith("application/apply-patch"):
        raise unsupported_media_type(_APPLY_REFUSED)
    apply = _APPLIERS.get(content_type)
    if apply is None:
        raise unsupported_media_type(
            f"the body of the request was in an unknown format - accepted media types include: {', '.join(_APPLIERS)}"
        )
    return apply(obj, patch)


def merge_patch(obj: Json, patch: Any) -> Json:
    if not isinstance(patch, dict):
        raise bad_request("error decoding patch: a merge patch has to be a JSON object")
    return _merged(obj, patch)


def _merged(target: Any, patch: Json) -> Json:
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict):
            result[key] = _merged(result.get(key), value)
        else:
            result[key] = value
    return result


def json_patch(obj: Json, patch: Any) -> Json:
    if not isinstance(patch, list) or not all(isinstance(step, dict) for step in patch):
        raise bad_request("error decoding patch: a JSON patch has to be a list of operations")
    document: Any = obj
    try:
        for step in patch:
            document = _json_step(document, step)
    except (KeyError, IndexError, ValueError, TypeError) as error:
        raise _rejected() from error
    if not isinstance(document, dict):
        raise _rejected()
    return document


def _rejected() -> ApiError:
    message = "the server rejected our request due to an error in our request"
    return ApiError(422, "Invalid", message, Details())


def _json_step(document: Any, step: Json) -> Any:
    operation, path = step["op"], _pointer(step["path"])
    if operation == "test":
        if _read(document, path) != step.get("value"):
            raise ValueError("test failed")
        return document
    if operation == "remove":
        return _edited(document, path, _drop)
    if operation == "add":
        return _edited(document, path, _put(step["value"], replace=False))
    if operation == "replace":
        _read(document, path)
        return _edited(document, path, _put(step["value"], replace=True))
    source = _pointer(step["from"])
    value = _read(document, source)
    if operation == "move":
        document = _edited(document, source, _drop)
    elif operation != "copy":
        raise ValueError(f"unknown operation {operation}")
    return _edited(document, path, _put(value, replace=False))


def _pointer(path: str) -> list[str]:
    if path and not path.startswith("/"):
        raise ValueError("a JSON pointer starts with /")
    return [part.replace("~1", "/").replace("~0", "~") for part in path.split("/")[1:]]


def _read(document: Any, path: list[str]) -> Any:
    for part in path:
        document = document[_index(part)] if isinstance(document, list) else document[part]
    return document


def _index(part: str) -> int:
    if not part.isdigit():
        raise ValueError(f"{part} is no list index")
    return int(part)


def _edited(document: Any, path: list[str], edit: Callable[[Any, str], Any]) -> Any:
    """A copy of the document along the path, with its last step edited."""
    if not path:
        raise ValueError("the whole object cannot be edited")
    head, rest = path[0], path[1:]
    if not rest:
        return edit(document, head)
    if isinstance(document, list):
        index = _index(head)
        return [*document[:index], _edited(document[index], rest, edit), *document[index + 1 :]]
    return {**document, head: _edited(document[head], rest, edit)}


def _drop(parent: Any, key: str) -> Any:
    if isinstance(parent, list):
        index = _index(key)
        return [*parent[:index], *parent[index + 1 :]] if index < len(parent) else parent[index]
    return {name: value for name, value in parent.items() if name != key} if key in parent else parent[key]


def _put(value: Any, *, replace: bool) -> Callable[[Any, str], Any]:
    def put(parent: Any, key: str) -> Any:
        if not isinstance(parent, list):
            return {**parent, key: value}
        index = len(parent) if key == "-" else _index(key)
        if index > len(parent):
            raise IndexError(key)
        return [*parent[:index], value, *parent[index + (1 if replace else 0) :]]

    return put


def _strategic(obj: Json, patch: Any) -> Json:
    if not isinstance(patch, dict):
        raise bad_request("error decoding patch: a strategic merge patch has to be a JSON object")
    return strategic_merge(obj, patch)


_APPLIERS: Mapping[str, Callable[[Json, Any], Json]] = {
    JSON_PATCH: json_patch,
    MERGE: merge_patch,
    STRATEGIC: _strategic,
}
