"""How well each fitting node would do: kube-scheduler's default plugins with their default weights.

Counted: NodeResourcesFit (LeastAllocated) 1, NodeResourcesBalancedAllocation 1, PodTopologySpread 2 with the system's
default constraints, TaintToleration 3. Not counted, because the lab has none of it: preferred affinities, images.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from loadtests.embedded.objects import controller_of, labels_of
from loadtests.embedded.resources import Json
from loadtests.embedded.scheduling.filters import taints_of, tolerated
from loadtests.embedded.scheduling.occupancy import Amounts, NodeState, pod_requests

_BEST = 100
_AXES = ("cpu", "memory")
_HOSTNAME = "kubernetes.io/hostname"
_ZONE = "topology.kubernetes.io/zone"
_DEFAULT_SPREAD = ((_HOSTNAME, 3), (_ZONE, 5))


def total_scores(pod: Json, states: Sequence[NodeState]) -> list[int]:
    stated, assumed = pod_requests(pod), pod_requests(pod, assume_unstated=True)
    best_effort = not any(stated.get(axis) for axis in _AXES)
    spread, taints = _spread(pod, states), _taint_toleration(pod, states)
    return [
        least_allocated(assumed, state)
        + (0 if best_effort else balanced_allocation(stated, state))
        + 2 * spread[index]
        + 3 * taints[index]
        for index, state in enumerate(states)
    ]


def least_allocated(wanted: Amounts, state: NodeState) -> int:
    scores = []
    for axis in _AXES:
        room = _whole(axis, state.allocatable.get(axis, 0.0))
        if room == 0:
            continue
        used = _whole(axis, state.assumed.get(axis, 0.0) + wanted.get(axis, 0.0))
        scores.append((room - used) * _BEST // room if used <= room else 0)
    return sum(scores) // len(scores) if scores else 0


def balanced_allocation(wanted: Amounts, state: NodeState) -> int:
    """By how much the pod evens out the use of cpu and memory, around 75."""
    after = {axis: state.requested.get(axis, 0.0) + wanted.get(axis, 0.0) for axis in _AXES}
    return _BEST // 2 + (_BEST // 2 + _balance(after, state) - _balance(state.requested, state)) // 2


def _balance(requested: Amounts, state: NodeState) -> int:
    shares = [
        min(1.0, requested.get(axis, 0.0) / state.allocatable[axis]) for axis in _AXES if state.allocatable.get(axis)
    ]
    deviation = abs(shares[0] - shares[1]) / 2 if len(shares) == 2 else 0.0
    return int((1 - deviation) * _BEST)


def _whole(axis: str, amount: float) -> int:
    """Millicores and bytes, the whole numbers that kube-scheduler divides."""
    return round(amount * 1000) if axis == "cpu" else round(amount)


def _taint_toleration(pod: Json, states: Sequence[NodeState]) -> list[int]:
    tolerations = [
        toleration
        for toleration in pod["spec"].get("tolerations") or ()
        if toleration.get("effect") in (None, "", "PreferNoSchedule")
    ]
    counts = [
        sum(
            1
            for taint in taints_of(state.node)
            if taint["effect"] == "PreferNoSchedule" and not tolerated(taint, tolerations)
        )
        for state in states
    ]
    most = max(counts, default=0)
    return [_BEST - (_BEST * count // most if most else 0) for count in counts]


def _spread(pod: Json, states: Sequence[NodeState]) -> list[int]:
    """Replicas apart: over hosts, and over zones where nodes have one. Replicas are the pods of one controller."""
    owner = controller_of(pod)
    if owner is None:
        return [0] * len(states)
    here = [state.by_controller[owner["uid"]] for state in states]
    raw = [0.0] * len(states)
    for key, max_skew in _DEFAULT_SPREAD:
        values = [labels_of(state.node).get(key) for state in states]
        domains = {value for value in values if value is not None}
        size = len(states) if key == _HOSTNAME else len(domains)
        weight = math.log(size + 2)
        for index, value in enumerate(values):
            if value is not None:
                count = here[index] if key == _HOSTNAME else _sum_of(here, values, value)
                raw[index] += count * weight + max_skew - 1
    return _normalised([round(score) for score in raw])


def _sum_of(counts: Sequence[int], values: Sequence[str | None], value: str) -> int:
    return sum(count for count, known in zip(counts, values, strict=True) if known == value)


def _normalised(scores: list[int]) -> list[int]:
    lowest, highest = min(scores, default=0), max(scores, default=0)
    if highest == 0:
        return [_BEST] * len(scores)
    return [_BEST * (highest + lowest - score) // highest for score in scores]
