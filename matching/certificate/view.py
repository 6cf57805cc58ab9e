"""The movable pods in rank order (rows) and the nodes by name, in shares of the largest node."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from itertools import chain, compress
from operator import attrgetter, not_

import numpy as np
import numpy.typing as npt

from matching.problem import Pod, Problem, Scope

Matrix = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int_]

SAME = 1e-9
NOWHERE = -1


class View:
    def __init__(self, problem: Problem, ends: Mapping[str, str | None]) -> None:
        """`ends` has the node that each pod ends on, or None."""
        self.problem, self.options = problem, problem.options
        self.hard_only = np.array([axis in problem.hard_only for axis in problem.axes], dtype=bool)
        self.nodes = sorted(problem.nodes, key=lambda node: node.name)
        self._names: dict[str | None, int] = {node.name: at for at, node in enumerate(self.nodes)}
        largest = np.array([node.allocatable for node in self.nodes], dtype=float).max(axis=0, initial=0.0)
        self._unit = np.where(largest > 0, largest, 1.0)
        may_move = self._may_move(problem.pods)
        self.pods = _ranked(list(compress(problem.pods, may_move)))
        self._others = list(compress(problem.pods, map(not_, may_move)))
        self._where = self._at(self._standing_still(ends))
        self.end = self._at([ends.get(pod.key) for pod in self.pods])
        self.home = self._at([pod.node for pod in self.pods])
        self.unhappy = np.array([not pod.happy for pod in self.pods], dtype=bool) & (self.home != NOWHERE)

    @property
    def moves_cost(self) -> bool:
        return self.options.inertia > 0

    @cached_property
    def usage(self) -> Matrix:
        return self._felt([pod.usage for pod in self.pods])

    @cached_property
    def request(self) -> Matrix:
        return self._shares([pod.request for pod in self.pods])

    @cached_property
    def peak(self) -> Matrix:
        return self._felt([pod.peak for pod in self.pods])

    @cached_property
    def allocatable(self) -> Matrix:
        return self._shares([node.allocatable for node in self.nodes])

    @cached_property
    def fixed_usage(self) -> Matrix:
        """On each node, of what cannot move; background included."""
        return self._background + np.where(self.hard_only, 0.0, self._of_others(lambda pod: pod.usage))

    @cached_property
    def fixed_request(self) -> Matrix:
        return self._of_others(lambda pod: pod.request)

    @cached_property
    def fixed_peak(self) -> Matrix:
        return self._background + np.where(self.hard_only, 0.0, self._of_others(lambda pod: pod.peak))

    @cached_property
    def fixed_count(self) -> Ints:
        return np.bincount(self._where[self._where != NOWHERE], minlength=len(self.nodes)).astype(int)

    @cached_property
    def _background(self) -> Matrix:
        nothing = (0.0,) * len(self._unit)
        return self._felt([node.background or nothing for node in self.nodes])

    def _of_others(self, amounts: Callable[[Pod], Sequence[float]]) -> Matrix:
        there = self._where != NOWHERE
        where, shares = self._where[there], self._shares([amounts(pod) for pod in self._others])[there]
        columns = [np.bincount(where, weights=column, minlength=len(self.nodes)) for column in shares.T]
        total: Matrix = np.stack(columns, axis=1)
        return total

    def _may_move(self, pods: Sequence[Pod]) -> list[bool]:
        scope, names = self.options.scope, self._names
        happy = scope is Scope.CLUSTER
        unhappy = happy or scope in {Scope.UNHAPPY, Scope.AFFECTED}
        return [
            not pod.fixed and (pod.node is None or ((happy if pod.happy else unhappy) and pod.node in names))
            for pod in pods
        ]

    def _standing_still(self, ends: Mapping[str, str | None]) -> list[str | None]:
        """A happy pod claims nothing in the scope affected, but it may have made room."""
        if self.options.scope is Scope.AFFECTED:
            return [ends.get(pod.key, pod.node) for pod in self._others]
        return [pod.node for pod in self._others]

    def _at(self, names: Sequence[str | None]) -> Ints:
        """The place of each among the nodes; no name, or one of no node here, is nowhere."""
        return np.array([self._names.get(name, NOWHERE) for name in names], dtype=int)

    def _shares(self, rows: Sequence[Sequence[float]]) -> Matrix:
        numbers = np.fromiter(chain.from_iterable(rows), dtype=float, count=len(rows) * len(self._unit))
        shares: Matrix = numbers.reshape(len(rows), len(self._unit)) / self._unit
        return shares

    def _felt(self, rows: Sequence[Sequence[float]]) -> Matrix:
        """The same; nothing on axes that can only reject."""
        return np.where(self.hard_only, 0.0, self._shares(rows))


def worst(load: Matrix, room: Matrix) -> Matrix:
    """Share of its room that is taken on the fullest axis; load where there is no room is more than full."""
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(room > 0, load / room, np.where(load > 0, 1.0 + load, 0.0))
    fullest: Matrix = share.max(axis=-1)
    return fullest


def _ranked(pods: Sequence[Pod]) -> list[Pod]:
    """Running pods by CPU use, then newcomers by priority and CPU use; names break ties."""
    by_name = sorted(pods, key=attrgetter("key"))
    newcomer = np.array([pod.node is None for pod in by_name], dtype=bool)
    priority = np.array([pod.priority for pod in by_name], dtype=np.int64)
    cpu = np.array([pod.usage[0] for pod in by_name], dtype=float)
    order = np.lexsort((-cpu, np.where(newcomer, -priority, 0), newcomer))
    return [by_name[at] for at in order.tolist()]
