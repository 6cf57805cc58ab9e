"""Usage as it would have been measured: in the first minute of every step, and in the minute after a move.

It is measured when the controller decides, for the times since it decided last. What is older than the history of usage
that it keeps is left out.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np

from reactor.cluster.records import NodeUsageSample, Pod, PodUsageSample
from reactor.replay.given import Given, Ints
from reactor.replay.recorded import STEP
from reactor.settings.model import Settings
from reactor.signals.measurements import MetricsSource
from reactor.signals.usage import UsageHistory


def with_steps_fresh(settings: Settings) -> Settings:
    """What is measured changes with the steps only, so it counts as fresh for as long."""
    freshness = max(settings.metrics.freshness, float(STEP))
    return settings.model_copy(update={"metrics": settings.metrics.model_copy(update={"freshness": freshness})})


class Measuring:
    def __init__(self, given: Given, usage: UsageHistory, window: float) -> None:
        """`window`: seconds of usage that the controller keeps."""
        self._given, self._usage, self._window = given, usage, window
        self._due: deque[tuple[int, float]] = deque()
        """Steps and times, oldest first."""

    def due(self, step: int, at: float) -> None:
        """At this time it is measured."""
        if not self._due or self._due[-1][1] < at:
            self._due.append((step, at))

    def is_due(self, now: float) -> bool:
        return bool(self._due) and self._due[0][1] <= now

    def catch_up(self, on: Ints, pods: Sequence[Pod | None], now: float) -> None:
        """`on`: the nodes of the replicas; `pods`: theirs."""
        passed = []
        while self.is_due(now):
            passed.append(self._due.popleft())
        for step, at in passed:
            if at > passed[-1][1] - self._window:
                self._measure(step, at, on, pods)

    def _measure(self, step: int, at: float, on: Ints, pods: Sequence[Pod | None]) -> None:
        given = self._given
        here = np.flatnonzero(on >= 0)
        cpu = given.got(on, step)
        memory = given.demand[1][given.workload[here], step]
        samples = [
            PodUsageSample(pod.namespace, pod.name, cores, used, at)
            for replica, cores, used in zip(here.tolist(), cpu.tolist(), memory.tolist(), strict=True)
            if (pod := pods[replica]) is not None
        ]
        self._usage.record_pods(samples, MetricsSource.PROMETHEUS, at)
        used = [np.bincount(on[here], each, len(given.nodes)) for each in (cpu, memory)]
        totals = zip(
            given.nodes, used[0] + given.background[0][:, step], used[1] + given.background[1][:, step], strict=True
        )
        self._usage.record_nodes(
            [NodeUsageSample(node.name, float(cores), float(held), at) for node, cores, held in totals],
            MetricsSource.PROMETHEUS,
            at,
        )
