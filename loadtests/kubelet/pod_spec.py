"""A bound pod as the lab kubelet needs it, read from the API object once, with errors that name the field."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from loadtests.workloads.app_spec import AppSpec, parse_app_spec
from reactor.cluster.decoding.quantity import parse_quantity
from reactor.errors import InputError

Json = dict[str, Any]
_MIN_WEIGHT = 0.002
"""What cgroups give a pod without a CPU request: 2 of 1024 shares per core."""


class PodSpecError(InputError):
    """The lab kubelet cannot run this pod; the message names the field and what would do."""


@dataclass(frozen=True, slots=True)
class ProbeSpec:
    path: str
    port: int
    period: float = 10.0
    timeout: float = 1.0
    initial_delay: float = 0.0
    failure_threshold: int = 3
    success_threshold: int = 1


@dataclass(frozen=True, slots=True)
class PodIdentity:
    namespace: str
    name: str
    uid: str
    resource_version: str
    labels: Mapping[str, str]

    @property
    def path(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}/pods/{self.name}"


@dataclass(frozen=True, slots=True)
class ContainerSpec:
    name: str
    image: str
    port: int
    cpu_weight: float
    cpu_limit: float
    requests: Mapping[str, str]
    limits: Mapping[str, str]
    liveness: ProbeSpec | None
    readiness: ProbeSpec | None
    pre_stop: float = 0.0
    """Seconds that a preStop hook sleeps; other hooks are not run."""


@dataclass(frozen=True, slots=True)
class LabPod:
    identity: PodIdentity
    container: ContainerSpec
    app: AppSpec
    grace: float


def identify(item: Json) -> PodIdentity:
    meta = item["metadata"]
    return PodIdentity(
        meta["namespace"], meta["name"], meta["uid"], str(meta["resourceVersion"]), meta.get("labels") or {}
    )


def deletion_grace(item: Json) -> float | None:
    """Seconds the pod may take to end; None while it is not being deleted."""
    meta = item["metadata"]
    return float(meta.get("deletionGracePeriodSeconds") or 0) if meta.get("deletionTimestamp") else None


def parse_pod(item: Json) -> LabPod:
    spec = item["spec"]
    containers = spec.get("containers") or []
    if len(containers) != 1 or spec.get("initContainers"):
        raise PodSpecError(f"spec.containers: the lab runs pods with exactly one container, got {len(containers)}")
    return LabPod(
        identity=identify(item),
        container=_container(containers[0]),
        app=parse_app_spec(item["metadata"].get("annotations") or {}),
        grace=float(spec.get("terminationGracePeriodSeconds", 30)),
    )


def _container(item: Json) -> ContainerSpec:
    path = f"spec.containers[{item['name']}]"
    if item.get("startupProbe"):
        raise PodSpecError(f"{path}.startupProbe: not supported by the lab; use initialDelaySeconds")
    ports = {str(port.get("name", "")): int(port["containerPort"]) for port in item.get("ports") or ()}
    requests = (item.get("resources") or {}).get("requests") or {}
    limits = (item.get("resources") or {}).get("limits") or {}
    return ContainerSpec(
        name=item["name"],
        image=item.get("image", "lab.local/app:1"),
        port=next(iter(ports.values()), 8080),
        cpu_weight=max(_quantity(f"{path}.resources.requests.cpu", requests.get("cpu", "0")), _MIN_WEIGHT),
        cpu_limit=_quantity(f"{path}.resources.limits.cpu", limits["cpu"]) if "cpu" in limits else float("inf"),
        requests=requests,
        limits=limits,
        liveness=_probe(f"{path}.livenessProbe", item.get("livenessProbe"), ports),
        readiness=_probe(f"{path}.readinessProbe", item.get("readinessProbe"), ports),
        pre_stop=float(((item.get("lifecycle") or {}).get("preStop") or {}).get("sleep", {}).get("seconds", 0)),
    )


def _quantity(path: str, value: str | int | float) -> float:
    try:
        return parse_quantity(value)
    except ValueError as error:
        raise PodSpecError(f"{path}: {error}") from error


def _probe(path: str, item: Json | None, ports: Mapping[str, int]) -> ProbeSpec | None:
    if not item:
        return None
    http = item.get("httpGet")
    if not http or str(http.get("scheme", "HTTP")).upper() != "HTTP":
        raise PodSpecError(f"{path}: the lab runs plain httpGet probes only")
    port = http.get("port")
    if isinstance(port, str) and not port.isdecimal():
        if port not in ports:
            raise PodSpecError(f"{path}.httpGet.port: no containerPort is named {port!r}")
        port = ports[port]
    return ProbeSpec(
        path=http.get("path") or "/",
        port=int(port or 8080),
        period=float(item.get("periodSeconds", 10)),
        timeout=float(item.get("timeoutSeconds", 1)),
        initial_delay=float(item.get("initialDelaySeconds", 0)),
        failure_threshold=int(item.get("failureThreshold", 3)),
        success_threshold=int(item.get("successThreshold", 1)),
    )
