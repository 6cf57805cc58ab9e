"""A pod's status as a value, and the JSON a real kubelet would write for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from loadtests.embedded.objects import timestamp
from loadtests.kubelet.pod_spec import ContainerSpec, LabPod

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Waiting:
    reason: str
    message: str = ""

    def json(self) -> Json:
        return {"waiting": {"reason": self.reason, **({"message": self.message} if self.message else {})}}


@dataclass(frozen=True, slots=True)
class Running:
    started: float

    def json(self) -> Json:
        return {"running": {"startedAt": timestamp(self.started)}}


@dataclass(frozen=True, slots=True)
class Terminated:
    started: float
    finished: float
    exit_code: int

    def json(self) -> Json:
        return {
            "terminated": {
                "exitCode": self.exit_code,
                "reason": "Completed" if self.exit_code == 0 else "Error",
                "startedAt": timestamp(self.started),
                "finishedAt": timestamp(self.finished),
            }
        }


@dataclass(frozen=True, slots=True)
class PodStatus:
    since: float
    """When the kubelet took the pod on."""
    host: str = ""
    state: Waiting | Running | Terminated = Waiting("ContainerCreating")
    last: Terminated | None = None
    restarts: int = 0
    ready: bool = False
    ready_changed: float = 0.0
    ending: bool = False

    @property
    def phase(self) -> str:
        if isinstance(self.state, Terminated) and self.ending:
            return "Succeeded" if self.state.exit_code == 0 else "Failed"
        return "Pending" if self.restarts == 0 and isinstance(self.state, Waiting) else "Running"


def render(pod: LabPod, status: PodStatus) -> Json:
    body: Json = {
        "phase": status.phase,
        "conditions": _conditions(pod, status),
        "hostIP": "127.0.0.1",
        "hostIPs": [{"ip": "127.0.0.1"}],
        "startTime": timestamp(status.since),
        "containerStatuses": [_container(pod, status)],
        "qosClass": _qos(pod.container),
    }
    if status.host:
        body |= {"podIP": status.host, "podIPs": [{"ip": status.host}]}
    return body


def _container(pod: LabPod, status: PodStatus) -> Json:
    container = pod.container
    running = isinstance(status.state, Running)
    body: Json = {
        "name": container.name,
        "image": container.image,
        "imageID": container.image if status.host else "",
        "ready": status.ready,
        "started": running,
        "restartCount": status.restarts,
        "state": status.state.json(),
        "lastState": status.last.json() if status.last else {},
    }
    if running:
        body["containerID"] = f"lab://{pod.identity.uid}-{status.restarts}"
    return body


def _conditions(pod: LabPod, status: PodStatus) -> list[Json]:
    since, changed = timestamp(status.since), timestamp(status.ready_changed or status.since)
    ready: Json = {"status": "True" if status.ready else "False", "lastTransitionTime": changed}
    if not status.ready:
        message = f"containers with unready status: [{pod.container.name}]"
        ready |= {"reason": "ContainersNotReady", "message": message}
    sandbox = {"status": "True" if status.host else "False", "lastTransitionTime": since}
    fixed = {"status": "True", "lastTransitionTime": since}
    by_type = {
        "PodReadyToStartContainers": sandbox,
        "Initialized": fixed,
        "Ready": ready,
        "ContainersReady": ready,
        "PodScheduled": fixed,
    }
    return [{"type": kind, "lastProbeTime": None, **values} for kind, values in by_type.items()]


def _qos(container: ContainerSpec) -> str:
    if not container.requests and not container.limits:
        return "BestEffort"
    both = all(name in container.limits for name in ("cpu", "memory"))
    same = all(container.requests.get(name, limit) == limit for name, limit in container.limits.items())
    return "Guaranteed" if both and same else "Burstable"
