"""RefineLB step by step: what is heavy, what is light, and which pod goes where next."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from matching.arrays import NOWHERE, TOLERANCE, Floats, Ints, Mask
from matching.case import Case
from matching.ledger import Ledger
from matching.planners.node_loads import NodeLoads


@dataclass(frozen=True, slots=True)
class Step:
    pod: int
    source: int
    target: int
    load: float
    """Of the source, before."""
    ends: float
    """The target's load with the pod."""
    rank: int
    """1 when no light node would have come closer to the limit with this pod."""


class Refining:
    """A placement that is refined move by move. The average stays what it was, so that there is an end."""

    def __init__(self, case: Case, loads: NodeLoads, at: Ints, overload: float) -> None:
        self.case, self.at = case, at.copy()
        self.loads = loads
        self.now: Floats = loads.of(self.at)
        counted = self.now[loads.counted]
        self.average = float(counted.mean()) if len(counted) else 0.0
        self.limit = self.average * overload
        self.ledger = Ledger(case.arrays, self.at)
        self._may_give = case.movable & (case.arrays.home != NOWHERE)
        self._spent: set[int] = set()
        """Nodes that have nothing to give. Light nodes only fill up, so that stays so until a new one becomes light."""

    def heavy(self) -> list[int]:
        """The heaviest first; equal ones by name."""
        loads = self.now.round(12)
        found = np.flatnonzero(loads > self.limit + TOLERANCE)
        ordered: list[int] = found[np.argsort(-loads[found], kind="stable")].tolist()
        return ordered

    def givers(self) -> list[int]:
        return [node for node in self.heavy() if node not in self._spent]

    def has_nothing(self, node: int) -> None:
        self._spent.add(node)

    def light(self) -> Ints:
        return np.flatnonzero(self.now < self.average - TOLERANCE)

    def pods_of(self, node: int) -> Ints:
        """Those that may go and weigh something, the heaviest first."""
        here = np.flatnonzero((self.at == node) & self._may_give)
        weight = self.loads.added_at(here, np.full(len(here), node)).round(12)
        weighty = weight > TOLERANCE
        return here[weighty][np.argsort(-weight[weighty], kind="stable")]

    def ends(self, pods: Ints, nodes: Ints) -> Floats:
        """(pods, nodes): the load of each node with each pod; minus infinity where that would pass the limit."""
        loads = (self.now[nodes] + self.loads.usage[:, pods].T @ self.loads.factor[:, nodes]).round(12)
        return np.where(loads <= self.limit + TOLERANCE, loads, -np.inf)

    def could_take(self, pod: int, nodes: Ints) -> Mask:
        """Which of the nodes may run the pod and have room."""
        able: Mask = (self.case.candidates.of(pod) & self.ledger.fits(pod))[nodes]
        return able

    def go(self, step: Step) -> None:
        added = self.loads.added_by(step.pod)
        self.ledger.take(step.pod, step.source)
        self.ledger.put(step.pod, step.target)
        self.now[step.source] -= added[step.source]
        self.now[step.target] += added[step.target]
        self.at[step.pod] = step.target
        if self.now[step.source] < self.average:
            self._spent.clear()


Choosing = Callable[[Refining], Step | None]


def closest_pair(refining: Refining) -> Step | None:
    """Of the heaviest node that can give: the pair whose node comes closest to the limit from below."""
    light = refining.light()
    for node in refining.givers():
        pods = refining.pods_of(node)
        ends = refining.ends(pods, light)
        checked: set[int] = set()
        while ends.size and np.isfinite(best := ends.max()):
            row, column = divmod(int(ends.argmax()), len(light))
            if row in checked:
                rank = 1 + int((refining.now[light] > refining.now[light[column]]).sum())
                return Step(int(pods[row]), node, int(light[column]), float(refining.now[node]), float(best), rank)
            ends[row, ~refining.could_take(int(pods[row]), light)] = -np.inf
            checked.add(row)
        refining.has_nothing(node)
    return None


def first_that_fits(refining: Refining) -> Step | None:
    """Of the heaviest node only: its heaviest pod that fits, on the first light node by name that takes it."""
    light = refining.light()
    for node in refining.heavy()[:1]:
        pods = refining.pods_of(node)
        ends = refining.ends(pods, light)
        for row, pod in enumerate(pods.tolist()):
            taking = np.flatnonzero(np.isfinite(ends[row]) & refining.could_take(pod, light))
            if len(taking):
                target = int(taking[0])
                return Step(pod, node, int(light[target]), float(refining.now[node]), float(ends[row, target]), 1)
    return None
