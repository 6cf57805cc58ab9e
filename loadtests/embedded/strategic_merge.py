"""Strategic merge: like a merge patch, but the lists that have a merge key are merged entry by entry.

Which lists do is part of the Kubernetes types; a list not named here (taints, tolerations) is replaced as a whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from loadtests.embedded.api_errors import bad_request
from loadtests.embedded.resources import Json

_MERGE_KEYS: Mapping[str, str] = {
    "addresses": "type",
    "conditions": "type",
    "containers": "name",
    "env": "name",
    "ephemeralContainers": "name",
    "hostAliases": "ip",
    "hostIPs": "ip",
    "imagePullSecrets": "name",
    "initContainers": "name",
    "ownerReferences": "uid",
    "podIPs": "ip",
    "resourceClaims": "name",
    "schedulingGates": "name",
    "topologySpreadConstraints": "topologyKey",
    "volumeDevices": "devicePath",
    "volumeMounts": "mountPath",
    "volumes": "name",
}
_PORT_KEYS = ("containerPort", "port")
"""Ports of a container and ports of a service have different keys; the entries themselves tell which."""
_SETS = ("finalizers", "podCIDRs")
_DIRECTIVE = "$patch"
_DELETE_ITEMS = "$deleteFromPrimitiveList/"
_ORDER = "$setElementOrder/"
_RETAIN = "$retainKeys"


def strategic_merge(target: Any, patch: Json) -> Json:
    directive = patch.get(_DIRECTIVE)
    if directive == "replace":
        return {key: value for key, value in patch.items() if key != _DIRECTIVE}
    if directive == "delete":
        return {}
    if directive not in (None, "merge"):
        raise bad_request(f"unknown patch type '{directive}'")
    result = dict(target) if isinstance(target, dict) else {}
    retained = patch.get(_RETAIN)
    if isinstance(retained, list):
        result = {key: value for key, value in result.items() if key in retained}
    for key, value in patch.items():
        _merge_field(result, key, value)
    return result


def _merge_field(result: Json, key: str, value: Any) -> None:
    if key in (_DIRECTIVE, _RETAIN) or key.startswith(_ORDER):
        return
    if key.startswith(_DELETE_ITEMS):
        field = key.removeprefix(_DELETE_ITEMS)
        if not isinstance(value, list):
            raise bad_request(f"{key} has to be a list of the items to remove")
        result[field] = [item for item in result.get(field) or () if item not in value]
    elif value is None:
        result.pop(key, None)
    elif isinstance(value, dict):
        result[key] = strategic_merge(result.get(key), value)
    elif isinstance(value, list):
        result[key] = _merge_list(key, result.get(key) or [], value)
    else:
        result[key] = value


def _merge_list(field: str, current: list[Any], patch: list[Any]) -> list[Any]:
    if field in _SETS:
        return [*current, *(item for item in patch if item not in current)]
    key = _merge_key(field, patch)
    if key is None:
        return [item for item in patch if not _is_directive(item)]
    if any(_is_directive(item) and item[_DIRECTIVE] == "replace" and key not in item for item in patch):
        return [item for item in patch if not _is_directive(item)]
    merged = list(current)
    for item in patch:
        _merge_item(merged, key, item)
    return merged


def _merge_key(field: str, patch: list[Any]) -> str | None:
    if field != "ports":
        return _MERGE_KEYS.get(field)
    return next((key for key in _PORT_KEYS if patch and isinstance(patch[0], dict) and key in patch[0]), None)


def _is_directive(item: Any) -> bool:
    return isinstance(item, dict) and _DIRECTIVE in item


def _merge_item(merged: list[Any], key: str, item: Any) -> None:
    if not isinstance(item, dict) or key not in item:
        raise bad_request(f"map: {item} does not contain declared merge key: {key}")
    place = next((at for at, known in enumerate(merged) if known.get(key) == item[key]), None)
    if item.get(_DIRECTIVE) == "delete":
        if place is not None:
            del merged[place]
    elif place is None:
        merged.append(strategic_merge({}, item))
    else:
        merged[place] = strategic_merge(merged[place], item)
