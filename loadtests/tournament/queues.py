"""The requests in every pod as a fluid, in steps of fixed length.

An app has workers and a backlog. Requests are served first come, first served, at the rate that the pod's CPU allows.
What is older than the clients' timeout has failed: in the backlog it is dropped, in a worker it still uses CPU, as a
thread does. What finds workers and backlog full is refused. A probe waits in the same line.

The loops are compiled: array operations on fifteen pods would take fifty times as long.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
from numba import njit

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

_Loop = TypeVar("_Loop", bound=Callable[..., Any])
EMPTY = 1e-6
"""Requests: less than this in a pod is nothing."""


def _compiled(function: _Loop) -> _Loop:
    """Cached on disk where that is possible; numba raises when it finds no folder to write to."""
    try:
        kept: _Loop = njit(cache=True, error_model="numpy")(function)
    except RuntimeError:
        kept = njit(error_model="numpy")(function)
    return kept


class Pods(NamedTuple):
    """Of all slots, in parallel arrays; only those that listen take part."""

    listens: Flags
    node: Ints
    weight: Floats
    limit: Floats
    """Cores; infinite without one."""
    work: Floats
    """CPU-seconds per request."""
    workers: Floats
    backlog: Floats
    idle: Floats
    """Cores that the pod uses besides requests: probes, or all of a batch pod's work."""
    rate: Floats
    """Requests per second."""
    queue: Floats
    """A row per pod: the requests that have timed out and are still in a worker, then those that have not, the oldest
    first, a column per step until the timeout."""


class Outcome(NamedTuple):
    """What happened in a step, by slot; written by `serve`."""

    answered: Floats
    failed: Floats
    used: Floats
    """CPU-seconds."""
    wait: Floats
    """Seconds that a probe which comes at the end of the step waits for a worker."""
    refused: Floats
    """Share of the requests that found workers and backlog full."""
    throttled: Floats
    """Seconds in which the pod's own limit held it back."""
    wanted: Floats
    """Cores that the pod could have used; scratch space of `serve`, as is the next."""
    share: Floats


def outcome(slots: int) -> Outcome:
    return Outcome(*(np.zeros(slots) for _ in Outcome._fields))


@_compiled
def fair_shares(listens: Flags, node: Ints, wanted: Floats, weight: Floats, cores: Floats, share: Floats) -> None:
    """Writes the cores of each pod: max-min fair by weight, no pod gets more than it wants.

    The pods of a node that are easiest to satisfy get what they want; the others share what is left by weight.
    """
    number = len(cores)
    left, weights = cores.copy(), np.zeros(number)
    for pod in range(len(node)):
        share[pod] = -1.0 if listens[pod] else 0.0
        if listens[pod]:
            weights[node[pod]] += weight[pod]
    changed = True
    while changed:
        changed = False
        level = left / weights
        for pod in range(len(node)):
            if share[pod] < 0 and wanted[pod] <= max(level[node[pod]], 0.0) * weight[pod]:
                share[pod] = wanted[pod]
                left[node[pod]] -= wanted[pod]
                weights[node[pod]] -= weight[pod]
                changed = True
    for pod in range(len(node)):
        if share[pod] < 0:
            at = node[pod]
            share[pod] = max(left[at], 0.0) * weight[pod] / weights[at]


@_compiled
def serve(pods: Pods, slower: Floats, cores: Floats, seconds: float, into: Outcome) -> None:
    """One step: the queues are changed, `into` gets what happened. `slower`: factor of the work, by node."""
    queue, columns = pods.queue, pods.queue.shape[1]
    for pod in range(len(pods.node)):
        into.answered[pod] = into.failed[pod] = into.wanted[pod] = 0.0
        if not pods.listens[pod]:
            continue
        oldest = queue[pod, 1]
        begun = min(oldest, max(pods.workers[pod] - queue[pod, 0], 0.0))
        queue[pod, 0] += begun
        for column in range(1, columns - 1):
            queue[pod, column] = queue[pod, column + 1]
        queue[pod, columns - 1] = 0.0
        into.failed[pod] = oldest
        work = pods.work[pod] * slower[pods.node[pod]]
        there = queue[pod].sum() + pods.rate[pod] * seconds
        into.wanted[pod] = min(pods.limit[pod], pods.workers[pod], there * work / seconds + pods.idle[pod])
    fair_shares(pods.listens, pods.node, into.wanted, pods.weight, cores, into.share)
    for pod in range(len(pods.node)):
        if pods.listens[pod]:
            _serve_pod(pods, pod, pods.work[pod] * slower[pods.node[pod]], seconds, into)


@_compiled
def _serve_pod(pods: Pods, pod: int, work: float, seconds: float, into: Outcome) -> None:
    queue, columns, share = pods.queue, pods.queue.shape[1], into.share[pod]
    arrivals = pods.rate[pod] * seconds
    able = max(share - pods.idle[pod], 0.0) * seconds / work if work > 0 else 0.0
    room = pods.workers[pod] + pods.backlog[pod] - queue[pod].sum() + able
    taken = min(arrivals, max(room, 0.0))
    queue[pod, columns - 1] = taken
    budget = able
    for column in range(columns):
        done = min(queue[pod, column], budget)
        budget -= done
        queue[pod, column] -= done
        if queue[pod, column] < EMPTY:
            queue[pod, column] = 0.0
        if column > 0:
            into.answered[pod] += done
    behind = max(queue[pod].sum() - pods.workers[pod], 0.0)
    into.wait[pod] = behind * seconds / max(able, 1e-12) if behind > 0 else 0.0
    into.failed[pod] += arrivals - taken
    into.refused[pod] = (arrivals - taken) / arrivals if arrivals > 0 else 0.0
    into.used[pod] += share * seconds
    if into.wanted[pod] >= pods.limit[pod]:
        into.throttled[pod] += seconds
