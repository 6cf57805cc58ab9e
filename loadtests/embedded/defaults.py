"""What the API fills in when a field is left out: values that clients and controllers may rely on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from loadtests.embedded.resources import (
    DEPLOYMENTS,
    EVENTS,
    NAMESPACES,
    PERSISTENTVOLUMECLAIMS,
    PERSISTENTVOLUMES,
    PODDISRUPTIONBUDGETS,
    PODS,
    REPLICASETS,
    STATEFULSETS,
    Json,
    Resource,
)
from reactor.cluster.decoding.quantity import parse_quantity

_EVICTION_TAINTS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


def with_defaults(resource: Resource, obj: Json) -> Json:
    fill = _FILLERS.get(resource)
    return fill(obj) if fill else obj


def initial_status(resource: Resource, obj: Json) -> Json | None:
    """The status a new object starts with, where the client's own is dropped."""
    if resource is PODS:
        return {"phase": "Pending", "qosClass": _qos_class(obj["spec"])}
    if resource is NAMESPACES:
        return {"phase": "Active"}
    if resource in (PERSISTENTVOLUMES, PERSISTENTVOLUMECLAIMS):
        return {"phase": "Pending"}
    if resource in (REPLICASETS, STATEFULSETS):
        return {"replicas": 0}
    if resource is PODDISRUPTIONBUDGETS:
        return {"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0}
    return {}


def with_pod_admission(pod: Json, priority: int) -> Json:
    """What admission adds to a new pod: its priority and the tolerations that give a failed node five minutes."""
    spec = pod["spec"]
    known = {(toleration.get("key", ""), toleration.get("effect", "")) for toleration in spec.get("tolerations") or ()}
    added = [
        {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
        for key in _EVICTION_TAINTS
        if (key, "NoExecute") not in known and (key, "") not in known and ("", "") not in known
    ]
    tolerations = [*(spec.get("tolerations") or ()), *added]
    policy = spec.get("preemptionPolicy", "PreemptLowerPriority")
    return {
        **pod,
        "spec": {**spec, "priority": priority, "preemptionPolicy": policy, "tolerations": tolerations},
    }


def _pod(pod: Json) -> Json:
    return {**pod, "spec": _pod_spec(pod.get("spec") or {})}


def _pod_spec(spec: Json) -> Json:
    filled = {
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "securityContext": {},
        "enableServiceLinks": True,
        "schedulerName": "default-scheduler",
        **spec,
        "containers": [_container(container) for container in spec.get("containers") or ()],
    }
    if spec.get("initContainers"):
        filled["initContainers"] = [_container(container) for container in spec["initContainers"]]
    return filled


def _container(container: Json) -> Json:
    image = str(container.get("image", ""))
    latest = ":" not in image.rpartition("/")[2] or image.endswith(":latest")
    filled = {
        **container,
        "resources": _resources(container.get("resources") or {}),
        "terminationMessagePath": container.get("terminationMessagePath", "/dev/termination-log"),
        "terminationMessagePolicy": container.get("terminationMessagePolicy", "File"),
        "imagePullPolicy": container.get("imagePullPolicy", "Always" if latest else "IfNotPresent"),
    }
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        if name in filled:
            filled[name] = _probe(filled[name])
    if filled.get("ports"):
        filled["ports"] = [{"protocol": "TCP", **port} for port in filled["ports"]]
    return filled


def _resources(resources: Json) -> Json:
    limits = resources.get("limits")
    return {**resources, "requests": {**limits, **(resources.get("requests") or {})}} if limits else resources


def _probe(probe: Json) -> Json:
    filled = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3, **probe}
    if isinstance(probe.get("httpGet"), dict):
        filled["httpGet"] = {"path": "/", "scheme": "HTTP", **probe["httpGet"]}
    return filled


def _template(spec: Json) -> Json:
    template = spec.get("template")
    return {**spec, "template": {**template, "spec": _pod_spec(template.get("spec") or {})}} if template else spec


def _deployment(obj: Json) -> Json:
    spec = obj.get("spec") or {}
    strategy = {"type": "RollingUpdate", **(spec.get("strategy") or {})}
    if strategy["type"] == "RollingUpdate":
        limits = {"maxUnavailable": "25%", "maxSurge": "25%"}
        strategy["rollingUpdate"] = {**limits, **(strategy.get("rollingUpdate") or {})}
    filled = {"replicas": 1, "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600, **spec, "strategy": strategy}
    return {**obj, "spec": _template(filled)}


def _replicated(obj: Json) -> Json:
    return {**obj, "spec": _template({"replicas": 1, **(obj.get("spec") or {})})}


def _event(obj: Json) -> Json:
    always: Json = {
        "firstTimestamp": None,
        "lastTimestamp": None,
        "eventTime": None,
        "source": {},
        "reportingComponent": "",
        "reportingInstance": "",
    }
    return {**always, **obj}


def _namespace(obj: Json) -> Json:
    metadata = obj["metadata"]
    labels = {**(metadata.get("labels") or {}), "kubernetes.io/metadata.name": metadata.get("name", "")}
    return {**obj, "metadata": {**metadata, "labels": labels}, "spec": {"finalizers": ["kubernetes"]}}


_FILLERS: Mapping[Resource, Callable[[Json], Json]] = {
    PODS: _pod,
    DEPLOYMENTS: _deployment,
    REPLICASETS: _replicated,
    STATEFULSETS: _replicated,
    EVENTS: _event,
    NAMESPACES: _namespace,
}


def _qos_class(spec: Json) -> str:
    containers: list[Json] = [*spec["containers"], *(spec.get("initContainers") or ())]
    requests = [_amounts(container, "requests") for container in containers]
    limits = [_amounts(container, "limits") for container in containers]
    if not any(requests) and not any(limits):
        return "BestEffort"
    same = all(request == limit and len(limit) == 2 for request, limit in zip(requests, limits, strict=True))
    return "Guaranteed" if same else "Burstable"


def _amounts(container: Json, which: str) -> dict[str, float]:
    stated: Iterable[tuple[str, Any]] = ((container.get("resources") or {}).get(which) or {}).items()
    return {
        name: parse_quantity(value) for name, value in stated if name in ("cpu", "memory") and value not in ("0", 0)
    }
