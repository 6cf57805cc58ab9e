"""Blocking pairs, counted from the definitions: node by node, all pods at once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cached_property

import numpy as np
import numpy.typing as npt

from matching.certificate.crowd import Crowd
from matching.certificate.neighbours import Neighbourhood
from matching.certificate.rules import may_come, may_stay
from matching.certificate.wishes import missed_wishes
from matching.problem import Node, Pod, Problem, Scope

Matrix = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

_SAME = 1e-9
_DECIMALS = 9
_RELIEVING, _OWN, _OTHER, _NONE = 0, 1, 2, 3


def blocking_pairs(problem: Problem, ends: Mapping[str, str | None]) -> Iterator[tuple[str, str, bool]]:
    """`ends` has the node that each pod ends on, or None. True: rules between pods are about that pod."""
    if not problem.nodes:
        return
    view = _View(problem, ends)
    crowd = Crowd(problem, ends)
    neighbourhood = Neighbourhood(crowd)
    for node in view.nodes:
        for at in np.flatnonzero(view.allowed(node) & view.prefers(node) & view.would_fit(node)).tolist():
            pod = view.pods[at].key
            if pod not in crowd.looks:
                yield pod, node.name, False
            elif neighbourhood.fits_beside(pod, node, view.outranked(at, node)):
                yield pod, node.name, True


class _View:
    """The movable pods in rank order (rows), by axis (columns), in shares of the largest node."""

    def __init__(self, problem: Problem, ends: Mapping[str, str | None]) -> None:
        self.options = problem.options
        self._problem = problem
        self._hard_only = np.array([axis in problem.hard_only for axis in problem.axes], dtype=bool)
        self.nodes = sorted(problem.nodes, key=lambda node: node.name)
        self._names = {node.name: at for at, node in enumerate(self.nodes)}
        largest = np.array([node.allocatable for node in self.nodes], dtype=float).max(axis=0, initial=0.0)
        self._unit = np.where(largest > 0, largest, 1.0)
        self.pods = sorted((pod for pod in problem.pods if self._may_move(pod)), key=_rank)
        movable = {pod.key for pod in self.pods}
        self._others: defaultdict[str | None, list[Pod]] = defaultdict(list)
        for pod in problem.pods:
            if pod.key not in movable:
                self._others[pod.node].append(pod)
        self._end = np.array([self._names.get(ends.get(pod.key) or "", -1) for pod in self.pods], dtype=int)
        self._home = np.array([self._names.get(pod.node or "", -1) for pod in self.pods], dtype=int)
        self._unhappy = np.array([not pod.happy and pod.node is not None for pod in self.pods], dtype=bool)
        distinct = {pod.rules: None for pod in self.pods}
        self._rules = list(distinct)
        places = {rules: at for at, rules in enumerate(self._rules)}
        self._rules_of = np.array([places[pod.rules] for pod in self.pods], dtype=int)

    def allowed(self, node: Node) -> Flags:
        at = self._names[node.name]
        come = np.array([may_come(rules, node) for rules in self._rules], dtype=bool)[self._rules_of]
        stay = np.array([may_stay(rules, node) for rules in self._rules], dtype=bool)[self._rules_of]
        newcomer = self._home < 0
        allowed: Flags = np.where(self._home == at, stay, come & (newcomer | node.measured)) & (self._end != at)
        return allowed

    def prefers(self, node: Node) -> Flags:
        """Strictly, to what the pod has: by group, then distance, then name."""
        at = self._names[node.name]
        group, distance = self._wish(at)
        had_group, had_distance = self._had
        same_group = group == had_group
        nearer = (distance < had_distance) | ((distance == had_distance) & (at < self._end))
        better: Flags = (group < had_group) | (same_group & nearer)
        return better

    def would_fit(self, node: Node) -> Flags:
        """Beside what cannot move and the pods that rank higher; rows are in rank order, so sums run downwards."""
        at = self._names[node.name]
        fixed = self._others[node.name]
        here = (self._end == at)[:, None]
        room = np.array(node.allocatable) / self._unit
        requested = self._total(fixed, "request") + _above(self._request * here)
        peaks = self._background(node) + self._total(fixed, "peak") + _above(self._peak * here)
        count = len(fixed) + _above(here.astype(float))[:, 0]
        by_request = (self._request == 0) | (requested + self._request <= room + _SAME)
        quota = room * (1 - self.options.headroom)
        by_peak = (self._peak == 0) | (peaks + self._peak < quota - _SAME)
        fits: Flags = by_request.all(axis=1) & by_peak.all(axis=1) & (count + 1 <= node.max_pods)
        return fits

    def outranked(self, at: int, node: Node) -> list[str]:
        """The movable pods that end on the node and that it ranks below this one."""
        there = np.flatnonzero(self._end == self._names[node.name])
        return [self.pods[row].key for row in there if row > at]

    @cached_property
    def _had(self) -> tuple[npt.NDArray[np.int_], Matrix]:
        """Group and distance of what each pod has in the end; nothing at all is worse than any node."""
        group = np.full(len(self.pods), _NONE)
        distance = np.full(len(self.pods), np.inf)
        for at, node in enumerate(self.nodes):
            mine = self._end == at
            if mine.any():
                groups, distances = self._wish(at)
                group[mine], distance[mine] = groups[mine], distances[mine]
                for row in np.flatnonzero(mine & (self._home == at)):
                    if not may_stay(self.pods[row].rules, node):
                        group[row] = _NONE
        return group, distance

    def _wish(self, at: int) -> tuple[npt.NDArray[np.int_], Matrix]:
        nearness = np.sqrt(((self._rooms[at] - self._usage) ** 2).sum(axis=1))
        groups, missed = self._wishes
        distance = np.round(nearness + self.options.soft_weight * missed[groups, at], _DECIMALS)
        own = self._home == at
        used_to_it = own & ~self._unhappy
        distance[used_to_it] = np.round(distance[used_to_it] - self.options.inertia, _DECIMALS)
        joined = _worst(self._loads[at] + self._peak, self._allocatable[at])
        relieved = joined <= self._home_load - self.options.relief + _SAME
        group = np.where(own, _OWN, np.where(relieved, _RELIEVING, _OTHER))
        return np.where(self._unhappy, group, _OTHER), distance

    @cached_property
    def _wishes(self) -> tuple[npt.NDArray[np.int_], Matrix]:
        return missed_wishes(self._problem, self.pods, self.nodes)

    @cached_property
    def _usage(self) -> Matrix:
        return self._shares(self.pods, "usage")

    @cached_property
    def _request(self) -> Matrix:
        return self._shares(self.pods, "request")

    @cached_property
    def _peak(self) -> Matrix:
        return self._shares(self.pods, "peak")

    @cached_property
    def _allocatable(self) -> Matrix:
        return np.array([node.allocatable for node in self.nodes], dtype=float) / self._unit

    @cached_property
    def _rooms(self) -> Matrix:
        """Available room of each node: allocatable less what cannot move."""
        taken = [self._background(node) + self._total(self._others[node.name], "usage") for node in self.nodes]
        return np.where(self._hard_only, 0.0, np.maximum(self._allocatable - np.array(taken), 0.0))

    @cached_property
    def _loads(self) -> Matrix:
        """Peaks on each node as things stand before the plan."""
        loads = np.array([self._background(node) + self._total(self._others[node.name], "peak") for node in self.nodes])
        running = self._home >= 0
        np.add.at(loads, self._home[running], self._peak[running])
        return loads

    @cached_property
    def _home_load(self) -> Matrix:
        loads = _worst(self._loads, self._allocatable)
        return np.where(self._home >= 0, loads[self._home], 0.0)

    def _may_move(self, pod: Pod) -> bool:
        if pod.fixed or (pod.node is not None and pod.node not in self._names):
            return False
        if pod.node is None or self.options.scope is Scope.CLUSTER:
            return True
        return self.options.scope is Scope.UNHAPPY and not pod.happy

    def _background(self, node: Node) -> Matrix:
        return np.where(self._hard_only, 0.0, np.array(node.background or (0.0,) * len(self._unit)) / self._unit)

    def _total(self, pods: list[Pod], what: str) -> Matrix:
        total: Matrix = self._shares(pods, what).sum(axis=0)
        return total

    def _shares(self, pods: list[Pod], what: str) -> Matrix:
        rows = [getattr(pod, what) for pod in pods]
        shares: Matrix = np.array(rows, dtype=float).reshape(len(rows), len(self._unit)) / self._unit
        return shares if what == "request" else np.where(self._hard_only, 0.0, shares)


def _rank(pod: Pod) -> tuple[bool, int, float, str]:
    """Running pods by CPU use, then newcomers by priority and CPU use; names break ties."""
    newcomer = pod.node is None
    return newcomer, -pod.priority if newcomer else 0, -pod.usage[0], pod.key


def _above(rows: Matrix) -> Matrix:
    """For each row the sum of the rows before it."""
    total = np.cumsum(rows, axis=0)
    return np.concatenate([np.zeros((1, rows.shape[1])), total[:-1]])


def _worst(load: Matrix, room: Matrix) -> Matrix:
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(room > 0, load / room, np.where(load > 0, 1.0 + load, 0.0))
    worst: Matrix = share.max(axis=1)
    return worst
