"""Watches the pods beside the controllers, and remembers when each became what it was."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from loadtests.chaos.history import PodHistory
from loadtests.embedded.metrics_api import NodeMetrics, PodMetrics
from loadtests.workloads.api import Changed, LabApi, Listed
from reactor.clock import Clock

Json = dict[str, Any]
_MOST, _MOST_HUNGRY = 1.2, 3.0
"""Cores that a pod uses at most."""


class PodObserver:
    """`pods` are those of one namespace, by UID. Resumed after every break; a list shows what was missed."""

    def __init__(self, api: LabApi, clock: Clock, namespace: str) -> None:
        self.pods: dict[str, Json] = {}
        self.histories: dict[str, PodHistory] = {}
        self._api, self._clock = api, clock
        self._path = f"/api/v1/namespaces/{namespace}/pods"
        self.listed = asyncio.Event()

    async def run(self) -> None:
        await self._api.follow(self._path, {}, self._see)

    def of(self, workload: str) -> list[Json]:
        return [pod for pod in self.pods.values() if pod["metadata"].get("labels", {}).get("app") == workload]

    def forget_the_gone(self) -> None:
        """Histories of pods that are gone are of no use to the next round."""
        self.histories = {uid: history for uid, history in self.histories.items() if uid in self.pods}

    def _see(self, change: Listed | Changed) -> None:
        now = self._clock.now()
        match change:
            case Listed(items):
                there = {item["metadata"]["uid"]: item for item in items}
                for uid in self.pods.keys() - there.keys():
                    self.histories[uid].gone(now)
                self.pods = there
                for item in items:
                    self._note(item, now)
                self.listed.set()
            case Changed("DELETED", item):
                self.pods.pop(item["metadata"]["uid"], None)
                self._note(item, now)
                self.histories[item["metadata"]["uid"]].gone(now)
            case Changed(_, item):
                self.pods[item["metadata"]["uid"]] = item
                self._note(item, now)

    def _note(self, pod: Json, now: float) -> None:
        uid = pod["metadata"]["uid"]
        self.histories.setdefault(uid, PodHistory.of(pod, now)).note(pod, now)


class DriftingUsage:
    """Implements the lab's MetricsProvider: what pods use changes at random every few seconds, so that other
    placements are better all the time; constant while `calm`. Pods of `hungry` workloads use more than the others."""

    def __init__(
        self,
        observer: PodObserver,
        nodes: Mapping[str, float],
        clock: Clock,
        epoch: float = 3.0,
        hungry: Callable[[], frozenset[str]] = frozenset,
    ) -> None:
        self.calm = False
        self._observer, self._nodes, self._clock, self._epoch = observer, nodes, clock, epoch
        self._hungry = hungry

    def node_usage(self) -> Iterable[NodeMetrics]:
        now = self._clock.now()
        used = dict.fromkeys(self._nodes, 0.05)
        for pod, cores in self._running():
            node = pod["spec"]["nodeName"]
            used[node] = used.get(node, 0.05) + cores
        return [NodeMetrics(name, used[name], 2**30, now) for name in self._nodes]

    def pod_usage(self) -> Iterable[PodMetrics]:
        now = self._clock.now()
        return [
            PodMetrics(pod["metadata"]["namespace"], pod["metadata"]["name"], (("web", cores, 2**26),), now)
            for pod, cores in self._running()
        ]

    def _running(self) -> list[tuple[Json, float]]:
        epoch = 0 if self.calm else int(self._clock.now() / self._epoch)
        placed = [pod for pod in self._observer.pods.values() if pod["spec"].get("nodeName")]
        hungry = self._hungry()
        return [(pod, self._cores(pod["metadata"], epoch, hungry)) for pod in placed]

    def _cores(self, meta: Json, epoch: int, hungry: frozenset[str]) -> float:
        """By a checksum: `hash` differs from process to process."""
        if self.calm:
            return 0.2
        most = _MOST_HUNGRY if meta.get("labels", {}).get("app") in hungry else _MOST
        return 0.05 + zlib.crc32(f"{meta['uid']}/{epoch}".encode()) % 1000 / 1000 * most
