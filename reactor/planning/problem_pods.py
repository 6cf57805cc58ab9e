"""The pods of a problem, made from records. A pod that has not changed since the last problem is the same value."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat

import numpy as np
from numpy.typing import NDArray

from matching.problem import Amounts, Rules, Strategy, from_columns
from matching.problem import Pod as ProblemPod
from reactor.cluster.pod_constraints import attached_volumes
from reactor.cluster.records import Pod
from reactor.cluster.view import ClusterView
from reactor.decision.strategies import Choice
from reactor.signals.workloads import workload_key
from reactor.state.snapshot import MEASURED

Row = tuple[Pod, str | None, str, bool, Rules, Choice, float]
"""Pod, its node, why it is fixed, whether it is happy, its rules, how it is moved, the seconds it takes to start. With
its needs that is all a pod without claims is made of, so that a pod with an equal row need not be made again."""

PodNeeds = tuple[Amounts, Amounts, Amounts, Amounts, float | None]
"""Request, usage, peak, mean and idle CPU. Without enough history the mean is empty, and the idle CPU None."""

EVICTED = Choice(Strategy.EVICT, "")
"""For pods that do not move: nobody asks how they would be moved."""


def counted(row: Row) -> Mapping[str, float]:
    """A pod that may move needs room for its replacement. Where it is, that is never less than what it takes."""
    return row[0].requests if row[2] else row[0].replacement_requests


def problem_pods(rows: Sequence[Row], needs: Sequence[PodNeeds], cluster: ClusterView) -> list[ProblemPod]:
    if not rows:
        return []
    pods, nodes, fixed, happy, rules, choices, startups = zip(*rows, strict=True)
    request, usage, peak, mean, idle_cpu = zip(*needs, strict=True)
    return from_columns(
        ProblemPod,
        {
            "key": [pod.key for pod in pods],
            "uid": [pod.uid for pod in pods],
            "usage": usage,
            "request": request,
            "peak": peak,
            "node": nodes,
            "workload": [workload_key(pod) for pod in pods],
            "priority": [pod.priority for pod in pods],
            "happy": happy,
            "fixed": fixed,
            "rules": rules,
            "labels": [pod.labels for pod in pods],
            "leaving": [pod.deleting is not None for pod in pods],
            "unknown": [()] * len(pods),
            "strategy": [choice.strategy or Strategy.EVICT for choice in choices],
            "strategy_reason": [choice.reason for choice in choices],
            "volumes": [attached_volumes(pod, cluster) if pod.pvcs else () for pod in pods],
            "startup_seconds": startups,
            "mean": mean,
            "idle_cpu": idle_cpu,
            "of_node": [pod.of_node for pod in pods],
        },
    )


class RequestAmounts:
    """Requests by axis. The pods of a template share the mapping, so the amounts are made once for its identity."""

    def __init__(self, axes: tuple[str, ...]) -> None:
        self.axes = axes
        self._known: dict[int, tuple[Amounts, Mapping[str, float]]] = {}

    def of(self, requests: Mapping[str, float]) -> Amounts:
        found = self._known.get(id(requests))
        if found is None:
            found = self._known[id(requests)] = (tuple(requests.get(axis, 0.0) for axis in self.axes), requests)
        return found[0]


@dataclass(frozen=True, slots=True)
class _Made:
    """The running pods of a problem, and from what they were made."""

    axes: tuple[str, ...]
    index: Mapping[str, int]
    """Positions by UID."""
    rows: Sequence[Row]
    measured: NDArray[np.float64]
    pods: Sequence[ProblemPod]


class KeptPods:
    """The running pods of the last problem. Only those that have changed are made again."""

    def __init__(self) -> None:
        self._last: _Made | None = None
        self._workloads: dict[str, tuple[Pod, str]] = {}
        """The key of its workload by the UID of a pod, with the record that it was made from."""

    def workloads_of(self, pods: Sequence[Pod]) -> list[str]:
        """The keys of their workloads."""
        known = self._workloads
        for pod in [pod for pod in pods if (kept := known.get(pod.uid)) is None or kept[0] is not pod]:
            known[pod.uid] = (pod, workload_key(pod))
        if len(known) > 2 * len(pods):
            self._workloads = {pod.uid: known[pod.uid] for pod in pods}
        return [known[pod.uid][1] for pod in pods]

    def of(
        self, rows: Sequence[Row], measured: NDArray[np.float64], requests: RequestAmounts, cluster: ClusterView
    ) -> list[ProblemPod]:
        """`measured`: see `_needs`. On all other axes a pod uses what it requests."""
        index = {row[0].uid: at for at, row in enumerate(rows)}
        last = self._last if self._last is not None and self._last.axes == requests.axes else None
        if last is None or not last.rows:
            pods = _made(rows, measured, requests, cluster)
        else:
            before = np.fromiter(map(last.index.get, index, repeat(-1)), np.intp, len(rows))
            pods = [last.pods[at] for at in before.tolist()]
            changed = _changed(last, rows, measured, before)
            again = _made([rows[at] for at in changed], measured[changed], requests, cluster)
            for at, pod in zip(changed, again, strict=True):
                pods[at] = pod
        self._last = _Made(requests.axes, index, rows, measured, pods)
        return pods


def _changed(last: _Made, rows: Sequence[Row], measured: NDArray[np.float64], before: NDArray[np.intp]) -> list[int]:
    """Positions. What is attached for a pod with claims depends on other objects, so it is always made again."""
    known_before = last.measured[before]
    equal = (known_before == measured) | (np.isnan(known_before) & np.isnan(measured))
    same = ((before >= 0) & equal.all(axis=1)).tolist()
    known = [last.rows[at] for at in before.tolist()]
    return [at for at, row in enumerate(rows) if not same[at] or row[0].pvcs or known[at] != row]


def _made(
    rows: Sequence[Row], measured: NDArray[np.float64], requests: RequestAmounts, cluster: ClusterView
) -> list[ProblemPod]:
    return problem_pods(rows, _needs(measured, [requests.of(counted(row)) for row in rows]), cluster)


def _needs(measured: NDArray[np.float64], requests: Sequence[Amounts]) -> list[PodNeeds]:
    """`measured` has a row of usage, peak and mean of the measured axes, and idle CPU, for each pod; the last two are
    NaN without enough history."""
    axes = len(MEASURED)
    if not requests:
        return []
    usage, peak, mean = (zip(*measured.T[at : at + axes].tolist(), strict=True) for at in range(0, 3 * axes, axes))
    known: list[bool] = (~np.isnan(measured[:, 2 * axes])).tolist()
    idle = [None if math.isnan(each) else each for each in measured[:, 3 * axes].tolist()]
    others = [request[axes:] for request in requests]
    return [
        (request, (*used, *other), (*most, *other), (*usual, *other) if has_history else (), low)
        for request, other, used, most, usual, has_history, low in zip(
            requests, others, usage, peak, mean, known, idle, strict=True
        )
    ]
