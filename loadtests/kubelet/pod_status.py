"""A pod's status as a value, the JSON that a kubelet writes for it, and the task that writes it."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import Any

from loadtests.embedded.objects import timestamp
from loadtests.kubelet.pod_spec import ContainerSpec, LabPod, PodIdentity
from loadtests.workloads.api import LabApi
from reactor.clock import Clock
from reactor.errors import ClusterError, Conflict, NotFound, Unreachable

Json = dict[str, Any]


_log = logging.getLogger(__name__)
_RETRY_SECONDS = 0.5
_ATTEMPTS = 20


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


class StatusPublisher:
    def __init__(self, identity: PodIdentity, api: LabApi, clock: Clock) -> None:
        self._identity = identity
        self._api = api
        self._clock = clock
        self._wanted: Json | None = None
        self._written: Json | None = None
        self._changed = asyncio.Event()

    def publish(self, status: Json) -> None:
        self._wanted = status
        self._changed.set()

    async def run(self) -> None:
        """Ends when the pod is gone."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            try:
                await self.flush()
            except (NotFound, Conflict):
                return
            except Unreachable:
                await self._clock.sleep(_RETRY_SECONDS)
                self._changed.set()
            except ClusterError as error:
                _log.error("status of %s refused: %s", self._identity.name, error)

    async def flush(self) -> None:
        if self._wanted is None or self._wanted == self._written:
            return
        wanted = self._wanted
        await self._api.patch(
            f"{self._identity.path}/status", {"metadata": {"uid": self._identity.uid}, "status": wanted}
        )
        self._written = wanted

    async def delete(self) -> None:
        """The kubelet's last word: the pod has ended, the object may go."""
        await delete_pod(self._identity, self._api, self._clock)


async def delete_pod(identity: PodIdentity, api: LabApi, clock: Clock) -> None:
    options = {
        "kind": "DeleteOptions",
        "apiVersion": "v1",
        "gracePeriodSeconds": 0,
        "preconditions": {"uid": identity.uid},
    }
    for _ in range(_ATTEMPTS):
        try:
            await api.delete(identity.path, options)
        except (NotFound, Conflict):
            return
        except Unreachable:
            await clock.sleep(_RETRY_SECONDS)
        else:
            return
    _log.error("pod %s/%s could not be deleted", identity.namespace, identity.name)
