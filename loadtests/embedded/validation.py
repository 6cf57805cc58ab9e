"""What is refused as Invalid (422): the rules that our controllers and the scheduler depend on."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from loadtests.embedded.api_errors import StatusCause
from loadtests.embedded.objects import name_of, namespace_of
from loadtests.embedded.resources import (
    CONFIGMAPS,
    DAEMONSETS,
    DEPLOYMENTS,
    EVENTS,
    PODDISRUPTIONBUDGETS,
    PODS,
    REPLICASETS,
    STATEFULSETS,
    Json,
    Resource,
)
from loadtests.embedded.selectors import selector_of
from reactor.cluster.decoding.quantity import parse_quantity

_SUBDOMAIN = re.compile(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$")
_CONFIG_KEY = re.compile(r"^[-._a-zA-Z0-9]{1,253}$")
_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")
_IMMUTABLE_POD = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)


def required(field: str, why: str = "") -> StatusCause:
    return StatusCause("FieldValueRequired", f"Required value: {why}" if why else "Required value", field)


def invalid_value(field: str, value: Any, why: str) -> StatusCause:
    shown = f'"{value}"' if isinstance(value, str) else str(value)
    return StatusCause("FieldValueInvalid", f"Invalid value: {shown}: {why}", field)


def forbidden_value(field: str, why: str) -> StatusCause:
    return StatusCause("FieldValueForbidden", f"Forbidden: {why}", field)


def problems(resource: Resource, obj: Json, old: Json | None = None) -> list[StatusCause]:
    """Everything wrong with this object, or with this change of it."""
    found = list(_name_problems(obj))
    check = _CHECKS.get(resource)
    if check is not None:
        found += check(obj)
    if old is not None and resource is PODS:
        found += _pod_change_problems(obj, old)
    if old is not None and resource in (DEPLOYMENTS, REPLICASETS, STATEFULSETS, DAEMONSETS):
        found += _selector_change_problems(obj, old)
    return found


def _name_problems(obj: Json) -> Iterator[StatusCause]:
    name = name_of(obj)
    if not name:
        yield required("metadata.name", "name or generateName is required")
    elif len(name) > 253 or not _SUBDOMAIN.match(name):
        yield invalid_value(
            "metadata.name",
            name,
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
            "and must start and end with an alphanumeric character",
        )


def _pod_problems(pod: Json) -> Iterator[StatusCause]:
    yield from _pod_spec_problems(pod["spec"], "spec")


def _pod_spec_problems(spec: Json, path: str) -> Iterator[StatusCause]:
    if not spec.get("containers"):
        yield required(f"{path}.containers")
    for field in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(field) or ()):
            where = f"{path}.{field}[{index}]"
            if not container.get("name"):
                yield required(f"{where}.name")
            if not container.get("image"):
                yield required(f"{where}.image")
            yield from _resource_problems(container.get("resources") or {}, f"{where}.resources")


def _resource_problems(resources: Json, path: str) -> Iterator[StatusCause]:
    for field in ("requests", "limits"):
        for name, value in (resources.get(field) or {}).items():
            yield from _quantity_problems(f"{path}.{field}[{name}]", value)


def _quantity_problems(path: str, value: Any) -> Iterator[StatusCause]:
    try:
        amount = parse_quantity(value)
    except ValueError:
        yield invalid_value(path, value, "quantities must match the regular expression of Kubernetes quantities")
        return
    if amount < 0:
        yield invalid_value(path, value, "must be greater than or equal to 0")


def _workload_problems(obj: Json) -> Iterator[StatusCause]:
    spec = obj.get("spec") or {}
    if spec.get("replicas", 0) < 0:
        yield invalid_value("spec.replicas", spec["replicas"], "must be greater than or equal to 0")
    yield from _selector_problems(spec.get("selector"), "spec.selector")
    template = spec.get("template") or {}
    labels = (template.get("metadata") or {}).get("labels") or {}
    if spec.get("selector") and not list(_selector_problems(spec["selector"], "")):
        matches = selector_of(spec["selector"])
        if not matches(labels):
            yield invalid_value("spec.template.metadata.labels", labels, "`selector` does not match template `labels`")
    yield from _pod_spec_problems(template.get("spec") or {}, "spec.template.spec")


def _selector_problems(selector: Json | None, path: str) -> Iterator[StatusCause]:
    if not selector:
        yield required(path)
        return
    for index, entry in enumerate(selector.get("matchExpressions") or ()):
        if entry["operator"] not in _OPERATORS:
            where = f"{path}.matchExpressions[{index}].operator"
            yield invalid_value(where, entry["operator"], "not a valid selector operator")


def _budget_problems(budget: Json) -> Iterator[StatusCause]:
    spec = budget.get("spec") or {}
    if "minAvailable" in spec and "maxUnavailable" in spec:
        yield invalid_value("spec", "...", "minAvailable and maxUnavailable cannot be both set")
    for field in ("minAvailable", "maxUnavailable"):
        value = spec.get(field)
        percent = isinstance(value, str) and re.fullmatch(r"(100|\d{1,2})%", value) is not None
        if value is not None and not percent and not (isinstance(value, int) and value >= 0):
            yield invalid_value(f"spec.{field}", value, "must be a number of pods, or a percentage from 0% to 100%")
    if spec.get("selector"):
        yield from _selector_problems(spec["selector"], "spec.selector")


def _event_problems(event: Json) -> Iterator[StatusCause]:
    namespace = (event.get("involvedObject") or {}).get("namespace", "")
    if namespace and namespace != namespace_of(event):
        yield invalid_value("involvedObject.namespace", namespace, "does not match event.namespace")


def _configmap_problems(configmap: Json) -> Iterator[StatusCause]:
    for key in configmap.get("data") or {}:
        if not _CONFIG_KEY.match(key):
            why = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'"
            yield invalid_value(f"data[{key}]", key, why)


def _pod_change_problems(pod: Json, old: Json) -> Iterator[StatusCause]:
    if _frozen_part(pod["spec"]) != _frozen_part(old["spec"]):
        yield forbidden_value("spec", _IMMUTABLE_POD)
    kept = pod["spec"].get("tolerations") or ()
    if any(toleration not in kept for toleration in old["spec"].get("tolerations") or ()):
        yield forbidden_value(
            "spec.tolerations", "existing toleration can not be modified except its tolerationSeconds"
        )
    before = [gate.get("name") for gate in old["spec"].get("schedulingGates") or ()]
    if any(gate.get("name") not in before for gate in pod["spec"].get("schedulingGates") or ()):
        yield forbidden_value("spec.schedulingGates", "only deletion is allowed, but found new scheduling gate")


def _frozen_part(spec: Json) -> Json:
    free = ("activeDeadlineSeconds", "tolerations", "schedulingGates", "containers", "initContainers")
    frozen = {key: value for key, value in spec.items() if key not in free}
    for field in ("containers", "initContainers"):
        frozen[field] = [{**container, "image": ""} for container in spec.get(field) or ()]
    return frozen


def _selector_change_problems(obj: Json, old: Json) -> Iterator[StatusCause]:
    selector = obj["spec"].get("selector")
    if selector != old["spec"].get("selector"):
        yield invalid_value("spec.selector", selector, "field is immutable")


_CHECKS: Mapping[Resource, Callable[[Json], Iterator[StatusCause]]] = {
    PODS: _pod_problems,
    DEPLOYMENTS: _workload_problems,
    REPLICASETS: _workload_problems,
    STATEFULSETS: _workload_problems,
    DAEMONSETS: _workload_problems,
    PODDISRUPTIONBUDGETS: _budget_problems,
    EVENTS: _event_problems,
    CONFIGMAPS: _configmap_problems,
}
