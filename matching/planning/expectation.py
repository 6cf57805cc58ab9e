"""How much pods are expected to fail, by placement: the benefit that plans are weighed by.

The failure curve says how likely a pod fails by the load of its node. The peaks of its pods do not fall together, so a
node's load is what its pods use and a part of their peaks. Two observations correct it:

- *Unhappy pods* show that their node is overloaded, whatever was measured: CPU use cannot exceed the capacity, so the
  demand of a saturated node is not seen. Such a node counts as saturated at least. As far as that is plausible, its
  pods want that much more CPU, wherever they go. What then still is missing stays on the node: it has another cause,
  and only those that leave are rid of it. A node that is known to be faulty has all of it, whatever its load.
- *Happy pods* show that their node is not crowded, whatever the curve says. So relieving it saves nothing. What comes
  there in addition can harm them.

Nor does it save anything to relieve a node further than to where its pods are happy with a margin: where they are
expected to fail half as often as an unhappy pod.

Without any unhappy pod, for a plan on demand, nodes whose load exceeds their room count as nodes in trouble.
"""

from __future__ import annotations

import numpy as np

from matching.array_types import NOWHERE, Floats, Ints, Mask
from matching.model.arrays import Arrays, share_of_room, sum_by_node
from matching.problem import TOLERANCE

_PEAKS_TOGETHER = 1 / 6
"""How much of the way from use to peak counts. The curve is of what nodes use, and the peaks of nine equal pods that do
not depend on each other add up to three peaks, which last for a part of the time. With more, nodes look full that are
not (docs/decisions/0025)."""
_MOST_UNSEEN = 1.5
"""So many times what was measured a starved pod may want."""

_AMPLE = 1.3
"""So many times what was measured a pod gets that starves for certain (docs/decisions/0025)."""
_SATURATED = 0.97
"""From this load on measurements do not show how much more the pods want."""

CPU = 0
"""The axis whose use cannot exceed the capacity."""


def usual_demand(arrays: Arrays) -> Floats:
    """Of the pods: what they use and a part of their peaks."""
    between = arrays.usage + _PEAKS_TOGETHER * (arrays.peak - arrays.usage)
    demand: Floats = np.minimum(between, arrays.peak)
    return demand


def usual_loads(arrays: Arrays, at: Ints) -> Floats:
    """By node, as a share on the worst axis, of what was measured."""
    load = arrays.background + sum_by_node(usual_demand(arrays), at, len(arrays.nodes))
    loads: Floats = share_of_room(load, arrays.allocatable).max(axis=0, initial=0.0)
    return loads


class Expectation:
    """All arrays are by node. Failing is counted in pods: 0.5 is one pod that fails every second probe."""

    def __init__(self, arrays: Arrays, *, ample: bool = False) -> None:
        """`ample`: count more than what was measured for pods that starve."""
        self._arrays, self._curve = arrays, arrays.options.failure_curve
        self._nodes = len(arrays.nodes)
        self.minutes = arrays.options.horizon / 60
        self.demand = usual_demand(arrays)
        """Of the pods."""
        measured = share_of_room(self.load(arrays.current), arrays.allocatable)
        self.in_trouble = _in_trouble(arrays, measured.max(axis=0, initial=0.0))
        unseen = self._unseen(measured[CPU])
        running = arrays.current != NOWHERE
        self.demand[CPU, running] *= unseen[arrays.current[running]]
        if ample:
            self._starved(measured[CPU])
        worst = share_of_room(self.load(arrays.current), arrays.allocatable).max(axis=0, initial=0.0)
        self.load_before = worst
        """As a share, on the worst axis: what can be explained by the pods there."""
        missing = np.where(arrays.faulty, self._curve.midpoint, (self._curve.midpoint - worst).clip(min=0.0))
        self._unexplained: Floats = np.where(self.in_trouble, missing, 0.0)
        self.before: Floats = self._curve.probabilities(worst + self._unexplained)
        """How likely a pod fails now."""
        self.calm = (1 - arrays.options.threshold) / 2
        """How likely a pod fails on a node that needs no relief."""

    def _unseen(self, cpu: Floats) -> Floats:
        """By which factor pods want more CPU than they get."""
        wanted = np.divide(self._curve.midpoint, cpu, out=np.ones_like(cpu), where=cpu > 0)
        return np.where(self.in_trouble & ~self._arrays.faulty, wanted.clip(1.0, _MOST_UNSEEN), 1.0)

    def _starved(self, cpu: Floats) -> None:
        """CPU is shared fairly, so on a saturated node it is the heaviest pods that want more than they get."""
        arrays = self._arrays
        unhappy = np.flatnonzero(arrays.unhappy & (arrays.current != NOWHERE))
        demand, nodes = self.demand[CPU, unhappy], arrays.current[unhappy]
        heaviest = np.zeros(self._nodes)
        np.maximum.at(heaviest, nodes, demand)
        self.demand[CPU, unhappy[(demand >= heaviest[nodes]) & (cpu[nodes] >= _SATURATED)]] *= _AMPLE

    def load(self, at: Ints) -> Floats:
        return self._arrays.background + sum_by_node(self.demand, at, self._nodes)

    def placed(self, at: Ints) -> ExpectedFailures:
        return ExpectedFailures(self, self._arrays, at)

    def loads_of(self, load: Floats, nodes: Ints) -> Floats:
        """As shares, on the worst axis. `load` has one column per node."""
        worst = share_of_room(load, self._arrays.allocatable[:, nodes]).max(axis=0, initial=0.0)
        loads: Floats = worst + self._unexplained[nodes]
        return loads

    def loads_of_each(self, load: Floats) -> Floats:
        """The same for all nodes, one row per pod. `load` is by axis, pod and node."""
        worst = share_of_room(load, self._arrays.allocatable[:, None, :]).max(axis=0, initial=0.0)
        loads: Floats = worst + self._unexplained
        return loads

    def failing(self, loads: Floats, nodes: Ints, residents: Floats, arrivals: Floats) -> Floats:
        """Of pods that were there before, and of pods that came."""
        likely = self._curve.probabilities(loads)
        more = (likely - self.before[nodes]).clip(min=0.0)
        beyond = (likely - self.calm).clip(min=0.0)
        failing: Floats = residents * np.where(self.in_trouble[nodes], beyond, more) + arrivals * likely
        return failing

    def likely(self, loads: Floats) -> Floats:
        return self._curve.probabilities(loads)

    def relieved(self, sources: Ints, loads: Floats) -> Mask:
        """One row per pod from one of those nodes: whether it is clearly better off on nodes that have such loads with
        it. Any node is better than a faulty one."""
        sources = sources[:, None]
        less = loads <= self.load_before[sources] - self._arrays.options.relief + TOLERANCE
        relieved: Mask = (less | self._arrays.faulty[sources]) & (self.likely(loads) <= self.before[sources] / 2)
        return relieved

    def happy(self, loads: Floats | float) -> Mask:
        """Whether pods are expected to be happy on nodes with such loads."""
        happy: Mask = self._curve.probabilities(np.asarray(loads)) <= 1 - self._arrays.options.threshold
        return happy


class ExpectedFailures:
    """Of one placement, which can be changed move by move."""

    def __init__(self, expectation: Expectation, arrays: Arrays, at: Ints) -> None:
        self._expectation, self._arrays = expectation, arrays
        number = len(arrays.nodes)
        self.load: Floats = expectation.load(at)
        placed = at != NOWHERE
        stayed = placed & (at == arrays.current)
        self.residents: Floats = np.bincount(at[stayed], minlength=number).astype(np.float64)
        self.arrivals: Floats = np.bincount(at[placed & ~stayed], minlength=number).astype(np.float64)
        self._every: Ints = np.arange(number)
        self.without_node = int((arrays.pending & ~placed).sum())
        self._now: Floats | None = None
        """By node, as the placement is; None after a change."""

    def total(self) -> float:
        """In pods; a pod without a node fails all the time."""
        return self.without_node + float(self._by_node().sum())

    def loads(self) -> Floats:
        return self._expectation.loads_of(self.load, self._every)

    def load_of(self, node: int) -> float:
        return float(self._expectation.loads_of(self.load[:, [node]], np.array([node]))[0])

    def load_with(self, pod: int, node: int) -> float:
        load = self.load[:, [node]] + self._expectation.demand[:, [pod]]
        return float(self._expectation.loads_of(load, np.array([node]))[0])

    def loads_with(self, pod: int) -> Floats:
        """Of every node, if the pod came."""
        return self._expectation.loads_of(self.load + self._expectation.demand[:, pod, None], self._every)

    def loads_with_each(self, pods: Ints) -> Floats:
        """The same for several pods, one row each."""
        demand = self._expectation.demand[:, pods]
        return self._expectation.loads_of_each(self.load[:, None, :] + demand[:, :, None])

    def saved_by_each(self, pods: Ints, loads_with: Floats) -> Floats:
        """For every node, in pods, one row per pod: what is saved if it alone moves there from its current node, where
        it is."""
        expectation, sources, now = self._expectation, self._arrays.current[pods], self._by_node()
        there = expectation.failing(loads_with, self._every, self.residents, self.arrivals + 1)
        left = expectation.loads_of(self.load[:, sources] - expectation.demand[:, pods], sources)
        here = expectation.failing(left, sources, self.residents[sources] - 1, self.arrivals[sources])
        saved: Floats = (now[sources] - here)[:, None] + now - there
        return saved

    def saved_by_moves(self, pods: Ints, targets: Ints) -> Floats:
        """For each of those pods, which have moved to those nodes: what would be lost if it alone went back."""
        expectation, sources, demand = self._expectation, self._arrays.current[pods], self._expectation.demand[:, pods]
        back = expectation.loads_of(self.load[:, sources] + demand, sources)
        left = expectation.loads_of(self.load[:, targets] - demand, targets)
        without = expectation.failing(back, sources, self.residents[sources] + 1, self.arrivals[sources])
        without = without + expectation.failing(left, targets, self.residents[targets], self.arrivals[targets] - 1)
        saved: Floats = without - self._of(sources) - self._of(targets)
        return saved

    def move(self, pod: int, source: int, target: int) -> None:
        """Between two nodes; one of them is the pod's current node, or NOWHERE."""
        self._now = None
        for node, change in ((source, -1), (target, 1)):
            if node == NOWHERE:
                continue
            self.load[:, node] += change * self._expectation.demand[:, pod]
            counts = self.residents if node == self._arrays.current[pod] else self.arrivals
            counts[node] += change

    def _by_node(self) -> Floats:
        """Worked out once for all moves that are weighed."""
        if self._now is None:
            self._now = self._of(self._every)
        return self._now

    def _of(self, nodes: Ints) -> Floats:
        loads = self._expectation.loads_of(self.load[:, nodes], nodes)
        return self._expectation.failing(loads, nodes, self.residents[nodes], self.arrivals[nodes])


def _in_trouble(arrays: Arrays, worst: Floats) -> Mask:
    if not arrays.unhappy.any():
        overfull: Mask = worst > 1 + TOLERANCE
        return overfull
    in_trouble = np.zeros(len(arrays.nodes), dtype=bool)
    in_trouble[arrays.current[arrays.unhappy]] = True
    return in_trouble
