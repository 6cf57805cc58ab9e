"""The requests in every pod as a fluid, in steps of fixed length, for all pods at once.

An app has workers and a backlog. Requests are served first come, first served, at the rate that the pod's CPU allows.
What is older than the clients' timeout has failed: in the backlog it is dropped, in a worker it still uses CPU, as a
thread does. What finds workers and backlog full is refused. A probe waits in the same line.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from loadtests.tournament.sharing import Floats, Ints, fair_shares

EMPTY = 1e-6
"""Requests: less than this in a pod is nothing."""


@dataclass(frozen=True, slots=True)
class Pods:
    """Of the pods that listen, in parallel arrays."""

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


@dataclass(frozen=True, slots=True)
class Step:
    """What happened in a step, by pod."""

    answered: Floats
    failed: Floats
    used: Floats
    """CPU-seconds."""
    wait: Floats
    """Seconds that a probe which comes at the end of the step waits for a worker."""
    refused: Floats
    """Share of the requests that found workers and backlog full."""
    throttled: Floats
    """1 where the pod's own limit held it back."""


def served(queue: Floats, pods: Pods, cores: Floats, arrivals: Floats, seconds: float) -> tuple[Floats, Step]:
    """The queue after the step, and what happened in it.

    `queue` has a row per pod: the requests that have timed out and are still in a worker, then those that have not, the
    oldest first, a column per step until the timeout.
    """
    aged, timed_out = _aged(queue, pods.workers)
    waiting = aged.sum(axis=1)
    usable = np.minimum(np.minimum(pods.limit, pods.workers), (waiting + arrivals) * pods.work / seconds + pods.idle)
    share = fair_shares(pods.node, usable, pods.weight, cores)
    for_requests = np.maximum(share - np.minimum(pods.idle, share), 0.0)
    able = np.where(pods.work > 0, for_requests * seconds / np.maximum(pods.work, 1e-12), np.inf)
    taken = np.minimum(arrivals, np.maximum(pods.workers + pods.backlog - waiting + able, 0.0))
    aged[:, -1] = taken
    done_until = np.minimum(np.cumsum(aged, axis=1), able[:, None])
    done = np.diff(done_until, axis=1, prepend=0.0)
    after = aged - done
    after[after < EMPTY] = 0.0
    left = after.sum(axis=1)
    behind = np.maximum(left - pods.workers, 0.0)
    rate = able / seconds
    wait = np.where(behind > 0, behind / np.maximum(rate, 1e-12), 0.0)
    refused = np.where(arrivals > 0, (arrivals - taken) / np.maximum(arrivals, 1e-12), 0.0)
    return after, Step(
        answered=done[:, 1:].sum(axis=1),
        failed=timed_out + arrivals - taken,
        used=share * seconds,
        wait=wait,
        refused=refused,
        throttled=(usable >= pods.limit).astype(float),
    )


def _aged(queue: Floats, workers: Floats) -> tuple[Floats, Floats]:
    """A step later, with an empty column for new requests: who has timed out stays only where a worker has begun."""
    oldest = queue[:, 1]
    begun = np.minimum(oldest, np.maximum(workers - queue[:, 0], 0.0))
    aged = np.empty_like(queue)
    aged[:, 0] = queue[:, 0] + begun
    aged[:, 1:-1] = queue[:, 2:]
    aged[:, -1] = 0.0
    return aged, oldest.copy()
