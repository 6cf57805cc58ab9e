"""pods/binding: puts a pod without a node onto one, once."""

from __future__ import annotations

from typing import Any

from loadtests.embedded.api_errors import ApiError, bad_request, conflict
from loadtests.embedded.object_api import ObjectApi
from loadtests.embedded.objects import is_deleting, name_of, timestamp, with_condition, with_metadata
from loadtests.embedded.resources import PODS, Json


def bind(api: ObjectApi, namespace: str, name: str, binding: Any, *, dry_run: bool = False) -> None:
    """`binding` is a v1 Binding; a uid or resourceVersion in its metadata is a precondition (409)."""
    metadata, node = _checked(name, binding)
    pod = api.get(PODS, namespace, name)
    _check_preconditions(pod, metadata)
    refusal = _refusal(pod)
    if refusal:
        raise conflict("pods/binding", "", name, refusal)
    annotations = {**(pod["metadata"].get("annotations") or {}), **(metadata.get("annotations") or {})}
    bound = with_metadata(pod, annotations=annotations or None)
    scheduled = {
        "type": "PodScheduled",
        "status": "True",
        "lastTransitionTime": timestamp(api.clock.now()),
    }
    bound["spec"] = {**pod["spec"], "nodeName": node}
    bound["status"] = with_condition(pod["status"], scheduled)
    if not dry_run:
        api.store.replace(PODS, bound)


def _checked(name: str, binding: Any) -> tuple[Json, str]:
    if not isinstance(binding, dict) or not isinstance(binding.get("metadata"), dict):
        raise bad_request("not a Binding object")
    metadata, target = binding["metadata"], binding.get("target")
    if metadata.get("name") != name:
        raise bad_request("name in URL does not match name in Binding object")
    if not isinstance(target, dict) or not target.get("name"):
        # The real server hands its validation error on without a status of its own: 500.
        raise ApiError(500, "", "target.name: Required value")
    if target.get("kind") not in (None, "", "Node"):
        message = f'target.kind: Unsupported value: "{target["kind"]}": supported values: "Node", "<empty>"'
        raise ApiError(500, "", message)
    return metadata, str(target["name"])


def _check_preconditions(pod: Json, metadata: Json) -> None:
    stored = pod["metadata"]
    for field, label in (("uid", "UID"), ("resourceVersion", "ResourceVersion")):
        wanted = metadata.get(field)
        if wanted and wanted != stored[field]:
            key = f"/registry/pods/{stored['namespace']}/{stored['name']}"
            why = (
                f"StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: "
                f"Precondition failed: {label} in precondition: {wanted}, {label} in object meta: {stored[field]}"
            )
            raise conflict("pods", "", stored["name"], why)


def _refusal(pod: Json) -> str:
    name = name_of(pod)
    if is_deleting(pod):
        return f"pod {name} is being deleted, cannot be assigned to a host"
    if pod["spec"].get("nodeName"):
        return f'pod {name} is already assigned to node "{pod["spec"]["nodeName"]}"'
    if pod["spec"].get("schedulingGates"):
        return f"pod {name} has non-empty .spec.schedulingGates"
    return ""
