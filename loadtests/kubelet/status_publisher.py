"""Writes the newest status of one pod, however often it changes while the API server is busy."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from loadtests.kubelet.pod_spec import PodIdentity
from loadtests.workloads.api import LabApi
from reactor.clock import Clock
from reactor.errors import ClusterError, Conflict, NotFound, Unreachable

_log = logging.getLogger(__name__)
Json = dict[str, Any]
_RETRY_SECONDS = 0.5
_ATTEMPTS = 20


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
