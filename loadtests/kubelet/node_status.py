"""Registers the Node and keeps its status fresh."""

from __future__ import annotations

import logging
from typing import Any

from loadtests.embedded.objects import timestamp
from loadtests.workloads.api import LabApi
from loadtests.workloads.placement import NodeSpec
from reactor.clock import Clock
from reactor.errors import ClusterError, Conflict

_log = logging.getLogger(__name__)
Json = dict[str, Any]

_HEALTHY = (
    ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
)


class NodeStatus:
    def __init__(self, spec: NodeSpec, api: LabApi, clock: Clock) -> None:
        self._spec = spec
        self._api = api
        self._clock = clock
        self._since = timestamp(clock.now())

    async def register(self) -> None:
        """A Node that is there already is taken over, as after a restart."""
        try:
            await self._api.create("/api/v1/nodes", self._spec.manifest())
        except Conflict:
            _log.debug("node %s is registered already", self._spec.name)
        await self._report()

    async def keep_fresh(self, every: float) -> None:
        while True:
            await self._clock.sleep(every)
            try:
                await self._report()
            except ClusterError as error:
                _log.warning("heartbeat of %s failed: %s", self._spec.name, error)

    async def _report(self) -> None:
        await self._api.patch(f"/api/v1/nodes/{self._spec.name}/status", {"status": self._status()})

    def _status(self) -> Json:
        now = timestamp(self._clock.now())
        return {
            "capacity": self._spec.resources(),
            "allocatable": self._spec.resources(),
            "conditions": [
                {
                    "type": kind,
                    "status": status,
                    "reason": reason,
                    "message": message,
                    "lastHeartbeatTime": now,
                    "lastTransitionTime": self._since,
                }
                for kind, status, reason, message in _HEALTHY
            ],
            "addresses": [
                {"type": "InternalIP", "address": self._spec.address},
                {"type": "Hostname", "address": self._spec.name},
            ],
            "nodeInfo": {
                "architecture": "amd64",
                "bootID": "",
                "containerRuntimeVersion": "lab://1",
                "kernelVersion": "lab",
                "kubeProxyVersion": "",
                "kubeletVersion": "v1.36.3-lab",
                "machineID": "",
                "operatingSystem": "linux",
                "osImage": "Rematch lab",
                "systemUUID": "",
            },
        }
