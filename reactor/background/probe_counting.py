"""Counts the probes of the managed pods by the load of their nodes, after each round of measurements."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import cast

import numpy as np

from reactor.background.failing_workloads import QUIET, TOGETHER, FailingWorkloads
from reactor.background.probing_pods import ProbingPods
from reactor.clock import Clock
from reactor.cluster.kinds import Kind
from reactor.cluster.records import Node, Pod
from reactor.decision.eligibility import Management
from reactor.settings.model import Managed, Settings
from reactor.state.calibration import BINS, Floats, bins_of
from reactor.state.live_state import State
from reactor.work_queue import BATCH

_UNUSED_NODES = 1_000
"""Numbers of nodes that are gone, before all are given anew."""


class ProbeCounting:
    """A pod counts when it is managed, runs for a while, is not being deleted, and its node is Ready and freshly
    measured."""

    def __init__(self, state: State, settings: Callable[[], Settings], clock: Clock) -> None:
        self._state = state
        self._settings = settings
        self._clock = clock
        self._pods = ProbingPods()
        self._failing = FailingWorkloads()
        self._managed: Managed | None = None
        self._counted_at: float | None = None
        self._one_at_a_time = asyncio.Lock()

    async def count(self) -> None:
        """The probes since the last call. After a gap in the measurements nothing is known of the load, and the probes
        are left out."""
        async with self._one_at_a_time:
            await self._follow_pods()
            self._count()

    def _count(self) -> None:
        now, begin = self._clock.now(), self._counted_at
        self._counted_at = now
        failures = self._state.probes.take_new_failures()
        if begin is None or not 0 < now - begin <= self._settings().metrics.freshness:
            return
        load = self._loads(now)[self._pods.node]
        counts = (self._pods.since <= now) & ~np.isnan(load)
        counts[self._silenced(now)] = False
        seconds = np.maximum(0.0, now - np.maximum(begin, self._pods.since))
        probes = np.where(counts, self._pods.rate * seconds, 0.0)
        failed = self._failed(failures, counts)
        for row in np.flatnonzero((failed > 0) & (load < QUIET)).tolist():
            workload = self._pods.workload(row)
            self._pods.set_group(workload, self._failing.watch(workload, now))
        self._add(load, probes, failed, now)

    async def _follow_pods(self) -> None:
        """Only pods that changed since the last round are looked at."""
        settings = self._settings()
        gone = len(self._pods.nodes) - len(self._state.mirror.records(Kind.NODES))
        if settings.managed != self._managed or gone > _UNUSED_NODES:
            self._managed = settings.managed
            self._pods.forget_all()
        changed = self._pods.changed(cast("Mapping[str, Pod]", self._state.mirror.records(Kind.PODS)))
        covers = Management.of(settings).covers
        for begin in range(0, len(changed), BATCH):
            if begin:
                await self._state.yield_to_cycle()
            self._pods.follow(changed[begin : begin + BATCH], covers, self._failing.group_of)

    def _loads(self, now: float) -> Floats:
        """By number of the node: use as a share of allocatable on its worst axis, NaN where it is not known."""
        loads = np.full(max(1, len(self._pods.nodes)), np.nan)
        used = self._state.usage.fresh_nodes(now)
        for name, record in self._state.mirror.records(Kind.NODES).items():
            node, number = cast(Node, record), self._pods.nodes.get(name)
            if number is None or name not in used or not node.ready:
                continue
            cpu, memory = node.allocatable.get("cpu", 0.0), node.allocatable.get("memory", 0.0)
            if cpu > 0 and memory > 0:
                loads[number] = max(used[name][0] / cpu, used[name][1] / memory)
        return loads

    def _silenced(self, now: float) -> list[int]:
        probes, rows = self._state.probes, self._pods.rows
        return [rows[uid] for uid in self._state.failing if uid in rows and probes.silenced(uid, now)]

    def _failed(self, failures: Mapping[str, float], counts: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Floats:
        failed = np.zeros(len(counts))
        for uid, count in failures.items():
            row = self._pods.rows.get(uid)
            if row is not None and counts[row]:
                failed[row] = count
        return failed

    def _add(self, load: Floats, probes: Floats, failed: Floats, now: float) -> None:
        calibration = self._state.calibration
        bins, known = bins_of(load), np.nan_to_num(load)
        expected = probes * calibration.curve.probabilities(known)
        counted = np.stack([probes, failed, probes * known, expected], axis=1)
        together, apart = (self._pods.group == TOGETHER), np.flatnonzero(self._pods.group != TOGETHER)
        self._failing.add(self._pods.group[apart], bins[apart], counted[apart])
        table = np.stack([np.bincount(bins, column * together, minlength=BINS) for column in counted.T], axis=1)
        released, late = self._failing.release(now)
        for workload in released:
            self._pods.set_group(workload, self._failing.group_of(workload))
        calibration.add(table + late, now)
