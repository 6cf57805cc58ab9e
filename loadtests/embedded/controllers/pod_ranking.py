"""Which pods of a replica set go first when there are too many: the order of the real controller."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable

from loadtests.embedded.objects import annotations_of, condition_of, is_active, is_ready, seconds, status_of, uid_of
from loadtests.embedded.resources import Json

DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}

Rank = tuple[object, ...]


def in_deletion_order(pods: Iterable[Json], related: Iterable[Json], now: float) -> list[Json]:
    """`related` are the pods of all replica sets of the same owner: the more of them share a node, the sooner."""
    on_node = Counter(pod["spec"].get("nodeName", "") for pod in related if is_active(pod))
    return sorted(pods, key=lambda pod: _rank(pod, on_node, now))


def _rank(pod: Json, on_node: Counter[str], now: float) -> Rank:
    node, ready = pod["spec"].get("nodeName", ""), is_ready(pod)
    return (
        bool(node),
        _PHASES.get(status_of(pod).get("phase", ""), 1),
        ready,
        deletion_cost(pod),
        -on_node[node],
        _age_bucket(_ready_since(pod), now) if ready else 0,
        -_most_restarts(pod),
        _age_bucket(seconds(pod["metadata"].get("creationTimestamp")), now),
        uid_of(pod),
    )


def deletion_cost(pod: Json) -> int:
    try:
        return int(annotations_of(pod).get(DELETION_COST, "0"))
    except ValueError:
        return 0


def _ready_since(pod: Json) -> float:
    return seconds((condition_of(pod, "Ready") or {}).get("lastTransitionTime"))


def _age_bucket(since: float, now: float) -> int:
    """Ages count by their order of magnitude (of nanoseconds), so that one zone's pods are not always the newest."""
    age = (now - since) * 1e9
    return int(math.log2(age)) if age > 0 else -1


def _most_restarts(pod: Json) -> int:
    return max((known.get("restartCount", 0) for known in status_of(pod).get("containerStatuses") or ()), default=0)
