"""What is measured of a run: availability, unhappy pods, moves and what became of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from loadtests.tournament.cluster import FluidCluster
from loadtests.tournament.queues import Floats
from loadtests.tournament.state import MoveRecord, Sample

BEFORE = 60.0
"""Seconds before a move: a pod that was unhappy for a tenth of them, or is when it begins, is in trouble."""
SETTLE = 45.0
AFTER = 165.0
"""Seconds after a move, from SETTLE on, in which the trouble has to be over."""
TWICE = 600.0


@dataclass(frozen=True, slots=True)
class Measures:
    availability: float
    """Answered over sent, the mean of the apps."""
    unhappy_minutes: float
    """Pod-minutes in which more than a tenth of a pod's recent probes failed, or it had no container or node."""
    lost_to_moves: float
    """Requests while a move had left an app without a Ready pod, or that were in a pod when it ended."""
    moves: int
    useless: int
    """Moves after which the pods of both nodes were in no less trouble than before."""
    harmful: int
    """Moves after which a pod of the target fails that did not before, and would not without the moved pod."""
    twice: int
    """Moves of a pod that had moved within 10 minutes, with no change of load in between."""
    cured: int
    """Pods on the source of a move, the moved one included, that were in trouble before it and are not after it. Once
    per pod and trouble: moves within 10 minutes cure the same one."""
    first_move: float | None
    """Seconds from the first failed probe to the first move; None without both."""
    restarts: int
    cpu_seconds: float
    """Of the policy."""
    pod_days: float
    parts: tuple[float, ...] = ()
    """Availability in each step of a ramp."""


def measure(cluster: FluidCluster, cpu_seconds: float) -> Measures:
    instance, samples = cluster.instance, cluster.samples
    moves = sorted(cluster.moves, key=lambda move: move.began)
    history = History(cluster)
    judged = [history.judge(move) for move in moves]
    first = moves[0].began - cluster.first_failure if moves and cluster.first_failure < np.inf else None
    ramp = instance.load.starts if len(instance.load.starts) > 2 else np.zeros(0)
    edges = [*ramp.tolist(), instance.seconds] if len(ramp) <= 20 else []
    return Measures(
        availability=availability(samples[0], samples[-1], cluster),
        unhappy_minutes=history.unhappy_minutes(),
        lost_to_moves=float(samples[-1].lost_to_moves.sum()),
        moves=len(moves),
        useless=sum(each.useless for each in judged),
        harmful=sum(each.harmful for each in judged),
        twice=moved_twice(moves, instance.changes()),
        cured=cured_pods(moves, judged),
        first_move=first,
        restarts=cluster.restarts,
        cpu_seconds=cpu_seconds,
        pod_days=cluster.lineages * instance.seconds / 86_400,
        parts=tuple(availability(history.at(begin), history.at(end), cluster) for begin, end in pairwise(edges)),
    )


def availability(begin: Sample, end: Sample, cluster: FluidCluster) -> float:
    sent, answered = end.sent - begin.sent, end.answered - begin.answered
    asked = np.array([not app.pinned for app in cluster.instance.apps]) & (sent > 0)
    return float(np.mean(np.minimum(answered[asked] / sent[asked], 1.0))) if asked.any() else 1.0


def moved_twice(moves: Sequence[MoveRecord], changes: Sequence[float]) -> int:
    last: dict[int, float] = {}
    twice = 0
    for move in moves:
        before = last.get(move.lineage)
        if before is not None and move.began - before < TWICE:
            twice += not any(before < change <= move.began for change in changes)
        last[move.lineage] = move.began
    return twice


@dataclass(frozen=True, slots=True)
class Judged:
    useless: bool
    harmful: bool
    cured: frozenset[int]


def cured_pods(moves: Sequence[MoveRecord], judged: Sequence[Judged]) -> int:
    last: dict[int, float] = {}
    cured = 0
    for move, each in zip(moves, judged, strict=True):
        for lineage in each.cured:
            cured += move.began - last.get(lineage, -np.inf) >= TWICE
            last[lineage] = move.began
    return cured


class History:
    """The samples of a run as arrays, a row per sample."""

    def __init__(self, cluster: FluidCluster) -> None:
        self._cluster, self._samples = cluster, cluster.samples
        self._times = np.array([sample.time for sample in self._samples])
        self._unhappy = np.stack([sample.unhappy for sample in self._samples])
        self._node = np.stack([sample.node for sample in self._samples])
        self._demand = np.stack([sample.demand for sample in self._samples])
        self._index = {name: node.index for name, node in cluster.nodes.items()}

    def at(self, time: float) -> Sample:
        return self._samples[max(0, int(np.searchsorted(self._times, time + 1e-6, side="right")) - 1)]

    def unhappy_minutes(self) -> float:
        length = np.diff(self._times, prepend=0.0)
        return float((self._unhappy.sum(axis=1) * length).sum() / 60)

    def judge(self, move: MoveRecord) -> Judged:
        if move.target not in self._index or move.source not in self._index:
            return Judged(useless=True, harmful=False, cured=frozenset())
        source, target = self._index[move.source], self._index[move.target]
        began = self._row(move.began)
        before = self._mean(move.began - BEFORE, move.began)
        after = self._mean(move.ended + SETTLE, move.ended + AFTER)
        where = self._node[began]
        moved = np.arange(len(where)) == move.lineage
        left, there = (where == source) & ~moved, (where == target) & ~moved
        trouble, still = (before > 0.1) | self._unhappy[began], after > 0.1
        near = left | there | moved
        cured = (left | moved) & trouble & ~still
        return Judged(
            useless=bool(after[near].sum() >= before[near].sum()),
            harmful=bool((there & ~trouble & still).any()) and self._by_this_move(move, target),
            cured=frozenset(np.flatnonzero(cured).tolist()),
        )

    def _by_this_move(self, move: MoveRecord, target: int) -> bool:
        """The target has more to do than it can, and had not without the moved pod."""
        app = self._cluster.apps[move.app].model
        row = self._row(move.ended + SETTLE)
        factor = self._cluster.instance.load.at(float(self._times[row]))[self._cluster.apps[move.app].index]
        cores = self._cluster.instance.nodes[target].spec.cores
        return bool(self._demand[row, target] > cores >= self._demand[row, target] - app.need * factor)

    def _mean(self, begin: float, end: float) -> Floats:
        """By lineage: the share of this time in which it is unhappy."""
        rows = np.flatnonzero((self._times >= begin) & (self._times <= end))
        rows = rows if len(rows) else np.array([self._row(end)])
        mean: Floats = self._unhappy[rows].mean(axis=0)
        return mean

    def _row(self, time: float) -> int:
        return max(0, int(np.searchsorted(self._times, time, side="right")) - 1)
