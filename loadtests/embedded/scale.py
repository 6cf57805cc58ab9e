"""The scale subresource of deployments, replica sets and stateful sets."""

from __future__ import annotations

from typing import Any

from loadtests.embedded.api_errors import bad_request, conflict, invalid, stale
from loadtests.embedded.object_api import ObjectApi
from loadtests.embedded.objects import changed, spec_of, status_of
from loadtests.embedded.resources import Json, Resource
from loadtests.embedded.validation import invalid_value


def read_scale(obj: Json) -> Json:
    metadata = obj["metadata"]
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    selector = spec_of(obj).get("selector") or {}
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {key: metadata[key] for key in kept if key in metadata},
        "spec": {"replicas": spec_of(obj).get("replicas", 1)},
        "status": {"replicas": status_of(obj).get("replicas", 0), "selector": selector_text(selector)},
    }


def write_scale(
    api: ObjectApi, resource: Resource, namespace: str, name: str, scale: Any, *, dry_run: bool, manager: str | None
) -> Json:
    obj = api.get(resource, namespace, name)
    metadata, replicas = _checked(name, scale)
    if metadata.get("uid") not in (None, "", obj["metadata"]["uid"]):
        raise conflict(resource.plural, resource.group, name, "Precondition failed: UID in precondition does not match")
    if metadata.get("resourceVersion") not in (None, "", obj["metadata"]["resourceVersion"]):
        raise stale(resource, name)
    scaled = changed(obj, spec={**spec_of(obj), "replicas": replicas})
    return read_scale(api.update(resource, scaled, dry_run=dry_run, manager=manager))


def _checked(name: str, scale: Any) -> tuple[Json, int]:
    if not isinstance(scale, dict) or not isinstance(scale.get("metadata", {}), dict):
        raise bad_request("expected a Scale object of autoscaling/v1")
    metadata, spec = scale.get("metadata", {}), scale.get("spec") or {}
    replicas = spec.get("replicas", 0) if isinstance(spec, dict) else None
    if not isinstance(replicas, int) or isinstance(replicas, bool):
        raise bad_request("Scale: spec.replicas has to be a number")
    if metadata.get("name", name) != name:
        raise bad_request(f"the name of the object ({metadata['name']}) does not match the name on the URL ({name})")
    if replicas < 0:
        cause = invalid_value("spec.replicas", replicas, "must be greater than or equal to 0")
        raise invalid("Scale", "autoscaling", name, [cause])
    return metadata, replicas


def selector_text(selector: Json) -> str:
    """A LabelSelector in its query-string form, as scale and wide tables show it."""
    parts = [f"{key}={value}" for key, value in sorted((selector.get("matchLabels") or {}).items())]
    words = {"In": "in", "NotIn": "notin"}
    for entry in selector.get("matchExpressions") or ():
        key, operator = entry["key"], entry["operator"]
        if operator in words:
            parts.append(f"{key} {words[operator]} ({','.join(sorted(entry.get('values') or ()))})")
        else:
            parts.append(key if operator == "Exists" else f"!{key}")
    return ",".join(parts)
