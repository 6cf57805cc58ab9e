"""What the answers are made from, fed by the watches of nodes and pods and by the measurements of Prometheus."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import cast

from reactor.clock import Clock
from reactor.cluster.hints import HOSTNAME_LABEL, Hint
from reactor.cluster.kinds import Kind
from reactor.cluster.records import Node, Pod, Record
from reactor.extender.answers import Answers
from reactor.signals.prometheus import PrometheusRound
from reactor.signals.usage import UsageHistory
from reactor.state.network_use import NetworkUse

BATCH = 2000
"""Samples that are recorded between two turns of the event loop: no question waits for all of them."""


class ExtenderState:
    def __init__(self, usage: UsageHistory, hints: Callable[[], Mapping[str, Hint]], clock: Clock) -> None:
        self._usage = usage
        self._clock = clock
        self._names: dict[str, str] = {}
        """Of nodes, by the value of their host-name label."""
        self.network = NetworkUse(usage)
        self.answers = Answers(self.network, hints, self._names.get, clock)
        self.asked: float | None = None
        """When kube-scheduler asked last."""

    def changed(self, kind: Kind, old: Record | None, new: Record | None) -> None:
        """A listener of the mirror. The usage history has to know the pod or node already."""
        if kind is Kind.PODS:
            self.network.pod_changed(cast("Pod | None", old), cast("Pod | None", new), self._clock.now())
        elif kind is Kind.NODES:
            self._node_changed(cast("Node | None", old), cast("Node | None", new))

    async def record(self, found: PrometheusRound) -> None:
        """Where no controller does it."""
        now = self._clock.now()
        for begin in range(0, len(found.network), BATCH):
            self._usage.record_network(found.network[begin : begin + BATCH], (), (), now)
            await asyncio.sleep(0)
        self._usage.record_network((), found.node_network, found.links, now)
        await asyncio.sleep(0)
        await self.measured()

    async def measured(self) -> None:
        """After each round of measurements."""
        self.network.measured(self._clock.now())

    def _node_changed(self, old: Node | None, new: Node | None) -> None:
        if old is not None:
            self._names.pop(old.labels.get(HOSTNAME_LABEL, ""), None)
        if new is not None and HOSTNAME_LABEL in new.labels:
            self._names[new.labels[HOSTNAME_LABEL]] = new.name
        self.network.node_changed(old, new)
