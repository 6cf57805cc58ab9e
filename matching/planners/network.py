"""BNIP's score as a planner: pods go one by one to the node that leaves the network use of the nodes most even.

A pod's demand is its usage on the axis, a node's bandwidth its allocatable. Pods without a node are placed in order
of priority and name, as they would be deployed; then running pods, the most demanding first, move where that lowers
the variance by at least `gain`. What is not known cannot be judged: such a pod stays, such a node receives no running
pod and is left out of the variance.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from matching.arrays import NOWHERE, Floats, Ints, Mask
from matching.case import Case, open_case
from matching.judging import judged
from matching.ledger import Ledger
from matching.parameters import ParameterError
from matching.plan import Plan, Promise
from matching.planners.network_score import DECIMALS, HIGHEST, scores, variances
from matching.planners.node_loads import NodeLoads, shares_of_room
from matching.planners.placing import Placed
from matching.planners.settling import Aim, Wish, settle
from matching.problem import Problem
from matching.reasons.wording import PENDING, may_not_stay
from matching.standing import Standing
from matching.writing import write_plan

STAY = "no node that takes it would make the network use of the nodes more even"


@dataclass(frozen=True, slots=True)
class NetworkPlanner:
    axis: str = "network"
    gain: float = 0.0001
    """How much a running pod's move must lower the variance of the shares; 0.0001 is one square percent."""

    name: ClassVar[str] = "network"
    waives: ClassVar[frozenset[Promise]] = frozenset()

    def __post_init__(self) -> None:
        if self.gain < 0:
            raise ParameterError("gain", f"is {self.gain:g}; it must be at least 0")

    def plan(self, problem: Problem) -> Plan:
        if self.axis not in problem.axes:
            raise ParameterError(
                "axis", f"the problem has no axis {self.axis!r}; its axes are {', '.join(problem.axes)}"
            )
        case = open_case(judged(problem, [self.axis]))
        loads = shares_of_room(case, {self.axis: 1.0})
        aim = Aim(loads, variance_of, "the variance of the nodes' network use", valued=_square_percent)
        return write_plan(self.name, case, settle(case, _Placing(case, loads, self.axis).wish(self.gain), aim))


class _Placing:
    """Node use as it changes while pods are placed and moved."""

    def __init__(self, case: Case, loads: NodeLoads, axis: str) -> None:
        self._case, self._loads, self._axis = case, loads, axis
        self._at = np.where(case.arrays.pending, NOWHERE, case.arrays.home)
        self._use = loads.of(self._at)
        self._ledger = Ledger(case.arrays, self._at)
        self._why: dict[int, tuple[str, ...]] = {}
        self._ranks: dict[int, int] = {}

    def wish(self, gain: float) -> Wish:
        for pod in self._deployed().tolist():
            self._place(pod)
        for pod in self._running().tolist():
            self._move(pod, gain)
        return Wish(Placed(self._at), self._why, self._ranks, STAY, notes=tuple(self._not_judged()))

    def _not_judged(self) -> Iterator[str]:
        """Without this a plan without moves would read as if all were well."""
        for what, things in (("pods", self._case.problem.pods), ("nodes", self._case.problem.nodes)):
            unknown = sum(self._axis in thing.unknown for thing in things)
            if unknown:
                missing = f"their {self._axis} is neither stated nor measured"
                yield f"{unknown} of {len(things)} {what} cannot be judged: {missing}"

    def _deployed(self) -> Ints:
        pods = np.flatnonzero(self._case.arrays.pending)
        priority = np.array([self._case.arrays.pods[pod].priority for pod in pods], dtype=np.int64)
        return pods[np.argsort(-priority, kind="stable")]

    def _running(self) -> Ints:
        home = self._case.arrays.home
        pods = np.flatnonzero(self._case.movable & (home != NOWHERE))
        return pods[np.argsort(-self._loads.sizes()[pods], kind="stable")]

    def _place(self, pod: int) -> None:
        possible = self._case.candidates.of(pod) & self._ledger.fits(pod)
        known = possible & self._loads.counted
        if not possible.any():
            return
        if self._axis in self._case.arrays.pods[pod].unknown or not known.any():
            node = self._case.preferences.choose(pod, possible, Standing(self._case.arrays))
            self._put(pod, node, (PENDING, f"its {self._axis} cannot be judged: nearest fit"))
            return
        variance = self._variance(pod)
        node = int(np.where(known, variance, np.inf).argmin())
        self._put(pod, node, (PENDING, self._why_node(variance, known, node)))

    def _move(self, pod: int, gain: float) -> None:
        home = int(self._at[pod])
        allowed = self._case.candidates.of(pod)
        if allowed[home] and not self._loads.counted[home]:
            return
        self._ledger.take(pod, home)
        self._use[home] -= self._added(pod)[home]
        possible = allowed & self._ledger.fits(pod) & self._loads.counted
        variance = self._variance(pod)
        best = int(np.where(possible, variance, np.inf).argmin()) if possible.any() else home
        if allowed[home] and variance[home] - variance[best] < max(gain, 10.0**-DECIMALS):
            best = home
        self._put(pod, best, (self._why_pod(pod, variance, best), self._why_node(variance, possible, best)))

    def _why_pod(self, pod: int, variance: Floats, best: int) -> str:
        home = int(self._case.arrays.home[pod])
        if refused := self._case.candidates.why_not(pod, home):
            return may_not_stay(self._case.arrays.nodes[home].name, refused)
        before, after = _square_percent(variance[home]), _square_percent(variance[best])
        return f"the variance of the nodes' {self._axis} use falls from {before} to {after}"

    def _put(self, pod: int, node: int, why: tuple[str, ...]) -> None:
        self._ledger.put(pod, node)
        self._use[node] += self._added(pod)[node]
        self._at[pod] = node
        self._why[pod] = why

    def _added(self, pod: int) -> Floats:
        return self._loads.added_by(pod)

    def _variance(self, pod: int) -> Floats:
        """If the pod were on each node; infinite where that cannot be judged."""
        counted = self._loads.counted
        found = np.full(len(counted), np.inf)
        found[counted] = variances(self._use[counted], self._added(pod)[counted])
        return found

    def _why_node(self, variance: Floats, possible: Mask, node: int) -> str:
        score = scores(np.where(possible, variance, 0.0), possible)[node]
        name = self._case.arrays.nodes[node].name
        return f"{name} scores {score:.1f} of {HIGHEST:g} among {int(possible.sum())}"


def variance_of(use: Floats) -> float:
    return float(use.var()) if len(use) else 0.0


def _square_percent(value: float) -> str:
    return f"{value * 1e4:.2f} %²"
