"""How many running pods a plan may move: in total, per workload, per node, per namespace.

A move counts from the pod's current node to its node in the plan, so trying several targets costs one move, and going
back costs none. Binding a pending pod does not count. Per node, pods that leave and pods that enter count together. A
pod without a workload is its own workload. Dumping a pod (its target is NOWHERE) counts.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator

import numpy as np

from matching.array_types import NOWHERE, Ints, Mask
from matching.model.arrays import Arrays
from matching.planning.reasons.wording import plural
from matching.problem import Options, Pod

_UNLIMITED = np.iinfo(np.int64).max // 4


class Budget:
    """What is left of the budget while a planner looks for moves."""

    def __init__(self, arrays: Arrays) -> None:
        options = arrays.options
        self.limited = any(limit is not None for _, limit in _limits(options))
        self._current = arrays.current
        self._total = _or_unlimited(options.max_moves)
        self._workload = _group((workload_of(pod) for pod in arrays.pods), options.max_moves_per_workload)
        self._namespace = _group((pod.namespace for pod in arrays.pods), options.max_moves_per_namespace)
        self._of_workload = _left(self._workload, options.max_moves_per_workload)
        self._of_namespace = _left(self._namespace, options.max_moves_per_namespace)
        self._of_node = np.full(len(arrays.nodes), _or_unlimited(options.max_moves_per_node), dtype=np.int64)

    def allows(self, pod: int, target: int) -> bool:
        """One move more, of a pod that has not been counted yet."""
        current = int(self._current[pod])
        if current in (NOWHERE, target):
            return True
        enters = target == NOWHERE or self._of_node[target] > 0
        return bool(self.may_leave(np.array([pod]))[0] and enters)

    def may_leave(self, pods: Ints) -> Mask:
        """Which of those running, not yet counted pods may still be moved."""
        if self._total <= 0:
            return np.zeros(len(pods), dtype=bool)
        left: Mask = self._of_node[self._current[pods]] > 0
        if self._workload is not None:
            left &= self._of_workload[self._workload[pods]] > 0
        if self._namespace is not None:
            left &= self._of_namespace[self._namespace[pods]] > 0
        return left

    def is_spent(self) -> bool:
        """Whether one of the limits is reached."""
        limits = (self._of_workload, self._of_namespace, self._of_node)
        return self._total <= 0 or any(bool((left <= 0).any()) for left in limits)

    def may_enter(self) -> Mask:
        """The nodes that may still receive a running pod from elsewhere."""
        may_receive: Mask = self._of_node > 0
        return may_receive

    def spend(self, pod: int, target: int) -> None:
        self._count(pod, target, -1)

    def refund(self, pod: int, target: int) -> None:
        """Take back what `spend` counted for the same pod and target."""
        self._count(pod, target, 1)

    def _count(self, pod: int, target: int, change: int) -> None:
        current = int(self._current[pod])
        if current in (NOWHERE, target):
            return
        self._total += change
        self._of_node[current] += change
        if target != NOWHERE:
            self._of_node[target] += change
        if self._workload is not None:
            self._of_workload[self._workload[pod]] += change
        if self._namespace is not None:
            self._of_namespace[self._namespace[pod]] += change


def movers(arrays: Arrays, at: Ints) -> Ints:
    """Running pods that end on another node, or on none."""
    return np.flatnonzero((arrays.current != NOWHERE) & (at != arrays.current))


def within_budget(arrays: Arrays, at: Ints) -> bool:
    budget = Budget(arrays)
    if not budget.limited:
        return True
    for pod in movers(arrays, at).tolist():
        if not budget.allows(pod, int(at[pod])):
            return False
        budget.spend(pod, int(at[pod]))
    return True


def budget_text(options: Options) -> str:
    """`budget of 5 moves, 1 move per workload`; empty when there is none."""
    parts = [plural(limit, "move") + each for each, limit in _limits(options) if limit is not None]
    return "budget of " + ", ".join(parts) if parts else ""


def stays_for_now(options: Options) -> str:
    return f"stays for now: {budget_text(options)}"


def budget_note(arrays: Arrays, at: Ints, wanted: Ints) -> str:
    """How many of the wanted moves are in a plan that the budget cut."""
    moves = f"{len(movers(arrays, at))} of {len(movers(arrays, wanted))} wanted moves"
    return f"{budget_text(arrays.options)}: {moves} are in the plan"


def _limits(options: Options) -> Iterator[tuple[str, int | None]]:
    yield "", options.max_moves
    yield " per workload", options.max_moves_per_workload
    yield " per node", options.max_moves_per_node
    yield " per namespace", options.max_moves_per_namespace


def workload_of(pod: Pod) -> Hashable:
    return (pod.namespace, pod.workload) if pod.workload else pod.key


def _group(keys: Iterable[Hashable], limit: int | None) -> Ints | None:
    """A number per pod for its group; None when the groups are not limited."""
    if limit is None:
        return None
    index: dict[Hashable, int] = {}
    return np.array([index.setdefault(key, len(index)) for key in keys], dtype=np.int64)


def _left(groups: Ints | None, limit: int | None) -> Ints:
    number = 0 if groups is None else int(groups.max(initial=-1)) + 1
    return np.full(number, _or_unlimited(limit), dtype=np.int64)


def _or_unlimited(limit: int | None) -> int:
    return _UNLIMITED if limit is None else limit
