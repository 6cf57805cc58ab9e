"""The lab's apps as Deployments of real containers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from loadtests.images.build import APP_IMAGE

Json = dict[str, Any]
PORT = 8080
ITERATIONS_PER_MS = 460_000
"""Of the web app's arithmetic on the machine this was measured on; a millisecond of one core."""


class AppKind(StrEnum):
    """The first argument of the image's one binary."""

    WEB = "web"
    """STABLE's: arithmetic iterations per request, each app its own number."""
    COUNTER = "counter"
    """KSE's CPU app."""
    MEMORY = "memory"
    """KSE's memory app: md5 strings in a list."""
    WORDPRESS = "wordpress"
    """KSE's realistic app; it asks DATABASE (a URL), which all of them share."""
    DATABASE = "database"
    """Its workers and backlog are the bounded pool."""


@dataclass(frozen=True, slots=True)
class ProbeTimes:
    period: int = 1
    timeout: int = 1
    failures: int = 3


@dataclass(frozen=True, slots=True)
class LabApp:
    name: str
    kind: AppKind = AppKind.WEB
    cpu: str = "20m"
    cpu_limit: str = ""
    """Empty: none."""
    memory: str = "32Mi"
    environment: Mapping[str, str] = field(default_factory=dict)
    """ITERATIONS, PROBE_ITERATIONS, WORKERS, BACKLOG, DRAIN_MS and the like: see loadtests/images/apps."""
    probe: ProbeTimes = field(default_factory=ProbeTimes)
    replicas: int = 1
    annotations: Mapping[str, str] = field(default_factory=dict)
    """Of the pods."""
    tolerations: tuple[Mapping[str, Any], ...] = ()
    grace_seconds: int = 2
    """From SIGTERM, or the start of the preStop hook, to SIGKILL."""
    pre_stop_seconds: int = 0
    """How long a preStop hook holds SIGTERM back; 0: it has none."""
    readiness: bool = True
    """Whether it has a readiness probe; without, a pod counts as Ready as soon as it runs."""
    only_on: str = ""
    """The one node that it may run on."""


def deployment(app: LabApp, namespace: str, scheduler: str = "rematch") -> Json:
    labels = {"app": app.name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": app.name, "namespace": namespace, "labels": labels},
        "spec": {
            "replicas": app.replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels, "annotations": dict(app.annotations)},
                "spec": _pod(app, scheduler),
            },
        },
    }


def _pod(app: LabApp, scheduler: str) -> Json:
    container: Json = {
        "name": "web",
        "image": APP_IMAGE,
        "imagePullPolicy": "Never",
        "args": [app.kind.value],
        "env": [{"name": name, "value": value} for name, value in app.environment.items()],
        "ports": [{"name": "http", "containerPort": PORT}],
        "resources": {"requests": {"cpu": app.cpu, "memory": app.memory}},
        "livenessProbe": _probe("/healthz", app.probe) | {"initialDelaySeconds": 1},
        "securityContext": {"runAsNonRoot": True, "allowPrivilegeEscalation": False},
    }
    if app.readiness:
        container["readinessProbe"] = _probe("/readyz", app.probe)
    if app.cpu_limit:
        container["resources"]["limits"] = {"cpu": app.cpu_limit}
    if app.pre_stop_seconds:
        container["lifecycle"] = {"preStop": {"sleep": {"seconds": app.pre_stop_seconds}}}
    return {
        "schedulerName": scheduler,
        "terminationGracePeriodSeconds": app.grace_seconds,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "tolerations": [dict(each) for each in app.tolerations],
        "nodeSelector": {"kubernetes.io/hostname": app.only_on} if app.only_on else {},
        "containers": [container],
    }


def _probe(path: str, times: ProbeTimes) -> Json:
    return {
        "httpGet": {"path": path, "port": "http"},
        "periodSeconds": times.period,
        "timeoutSeconds": times.timeout,
        "failureThreshold": times.failures,
    }
