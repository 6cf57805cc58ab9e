"""A problem and where each of its pods ends, as arrays: the movable pods in rank order (rows) and the nodes by name, in
shares of the largest node. Requests, and what they may take, are in whole units."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, compress
from operator import attrgetter, not_

import numpy as np
import numpy.typing as npt

from matching.cached_property import cached_property
from matching.problem import Pod, Problem, Scope
from matching.whole_units import WholeUnits, by_axis, whole_units

Matrix = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int_]

TOLERANCE = 1e-9
NO_NODE = -1


class Placement:
    def __init__(self, problem: Problem, ends: Mapping[str, str | None]) -> None:
        """`ends` has the node that each pod ends on, or None."""
        self.problem, self.options = problem, problem.options
        self.hard_only = np.array([axis in problem.hard_only for axis in problem.axes], dtype=bool)
        self.nodes = sorted(problem.nodes, key=lambda node: node.name)
        self._index: dict[str | None, int] = {node.name: at for at, node in enumerate(self.nodes)}
        largest = np.array([node.allocatable for node in self.nodes], dtype=float).max(axis=0, initial=0.0)
        self._unit = np.where(largest > 0, largest, 1.0)
        movable = self._movable(problem.pods)
        self.pods = _ranked(list(compress(problem.pods, movable)))
        self._fixed = list(compress(problem.pods, map(not_, movable)))
        self._fixed_at = self._indexes(self._fixed_nodes(ends))
        self.end = self._indexes([ends.get(pod.key) for pod in self.pods])
        self.current = self._indexes([pod.node for pod in self.pods])
        self.unhappy = np.array([not pod.happy for pod in self.pods], dtype=bool) & (self.current != NO_NODE)

    @property
    def moves_cost(self) -> bool:
        return self.options.inertia > 0

    @cached_property
    def usage(self) -> Matrix:
        return self._measured_shares([pod.usual for pod in self.pods])

    @cached_property
    def request(self) -> Matrix:
        return np.ascontiguousarray(self._whole.request[:, : len(self.pods)].T)

    @cached_property
    def peak(self) -> Matrix:
        return self._measured_shares([pod.peak for pod in self.pods])

    @cached_property
    def allocatable(self) -> Matrix:
        return self._shares([node.allocatable for node in self.nodes])

    @cached_property
    def fixed_usage(self) -> Matrix:
        """By node, of the pods that cannot move; background included."""
        return self._background + np.where(self.hard_only, 0.0, self._fixed_sum(lambda pod: pod.usual))

    @cached_property
    def requestable(self) -> Matrix:
        return self._whole.allocatable.T

    @cached_property
    def fixed_request(self) -> Matrix:
        return self._sum_of_fixed(self._whole.request[:, len(self.pods) :].T)

    @cached_property
    def fixed_peak(self) -> Matrix:
        return self._background + np.where(self.hard_only, 0.0, self._fixed_sum(lambda pod: pod.peak))

    @cached_property
    def fixed_count(self) -> Ints:
        return np.bincount(self._fixed_at[self._fixed_at != NO_NODE], minlength=len(self.nodes)).astype(int)

    def fixed_pods(self) -> Iterator[tuple[Pod, int]]:
        """The pods that cannot move, each with its node or NO_NODE."""
        return zip(self._fixed, self._fixed_at.tolist(), strict=True)

    @cached_property
    def no_execute(self) -> Flags:
        """By row: the current node has a NoExecute taint, so that the pod may not be allowed to stay. Few nodes have
        one."""
        tainted = [at for at, node in enumerate(self.nodes) if any(each.effect == "NoExecute" for each in node.taints)]
        return np.isin(self.current, tainted)

    @cached_property
    def _background(self) -> Matrix:
        nothing = (0.0,) * len(self._unit)
        return self._measured_shares([node.background or nothing for node in self.nodes])

    @cached_property
    def _whole(self) -> WholeUnits:
        """Of the movable pods, then the fixed ones."""
        requests = by_axis([pod.request for pod in (*self.pods, *self._fixed)], len(self._unit))
        return whole_units(requests, by_axis([node.allocatable for node in self.nodes], len(self._unit)))

    def _fixed_sum(self, amounts: Callable[[Pod], Sequence[float]]) -> Matrix:
        return self._sum_of_fixed(self._shares([amounts(pod) for pod in self._fixed]))

    def _sum_of_fixed(self, amounts: Matrix) -> Matrix:
        there = self._fixed_at != NO_NODE
        at = self._fixed_at[there]
        columns = [np.bincount(at, weights=column, minlength=len(self.nodes)) for column in amounts[there].T]
        total: Matrix = np.stack(columns, axis=1)
        return total

    def _movable(self, pods: Sequence[Pod]) -> list[bool]:
        scope, names = self.options.scope, self._index
        happy = scope is Scope.CLUSTER
        unhappy = happy or scope in {Scope.UNHAPPY, Scope.AFFECTED}
        return [
            not pod.fixed and (pod.node is None or ((happy if pod.happy else unhappy) and pod.node in names))
            for pod in pods
        ]

    def _fixed_nodes(self, ends: Mapping[str, str | None]) -> list[str | None]:
        """In the scope affected a happy pod has no blocking pairs, but it may have made room."""
        if self.options.scope is Scope.AFFECTED:
            return [ends.get(pod.key, pod.node) for pod in self._fixed]
        return [pod.node for pod in self._fixed]

    def _indexes(self, names: Sequence[str | None]) -> Ints:
        """NO_NODE for None and for a name that is not a node of the problem."""
        return np.array([self._index.get(name, NO_NODE) for name in names], dtype=int)

    def _shares(self, rows: Sequence[Sequence[float]]) -> Matrix:
        numbers = np.fromiter(chain.from_iterable(rows), dtype=float, count=len(rows) * len(self._unit))
        shares: Matrix = numbers.reshape(len(rows), len(self._unit)) / self._unit
        return shares

    def _measured_shares(self, rows: Sequence[Sequence[float]]) -> Matrix:
        """The same, with 0 on axes that are `hard_only`."""
        return np.where(self.hard_only, 0.0, self._shares(rows))


def worst_share(load: Matrix, room: Matrix) -> Matrix:
    """Load as a share of the room on the fullest axis. Load where there is no room reads as more than full."""
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(room > 0, load / room, np.where(load > 0, 1.0 + load, 0.0))
    fullest: Matrix = share.max(axis=-1)
    return fullest


def _ranked(pods: Sequence[Pod]) -> list[Pod]:
    """Running pods by CPU use, then pending pods by priority and CPU use; names break ties."""
    by_name = sorted(pods, key=attrgetter("key"))
    pending = np.array([pod.node is None for pod in by_name], dtype=bool)
    priority = np.array([pod.priority for pod in by_name], dtype=np.int64)
    cpu = np.array([pod.rank_cpu for pod in by_name], dtype=float)
    order = np.lexsort((-cpu, np.where(pending, -priority, 0), pending))
    return [by_name[at] for at in order.tolist()]
