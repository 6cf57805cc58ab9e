"""`network`: BNIP's score as a planner. Pods go one by one to the node that leaves the network use of the nodes most
even.

A pod's demand is its usage on the axis, a node's bandwidth its allocatable. Pods without a node are placed in order of
priority and name, as they would be deployed. Then running pods, the most demanding first, move where that lowers the
variance by at least `gain`. A pod with unknown demand stays. A node with unknown bandwidth receives no running pod and
does not count for the variance.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from matching.array_types import NOWHERE, Floats, Ints, Mask
from matching.model.ledger import Ledger
from matching.network_score import DECIMALS, HIGHEST, scores, variances
from matching.parameters import ParameterError
from matching.plan import Plan, Promise
from matching.planning.load_balancing import Draft, LoadObjective, limited_outcome
from matching.planning.node_loads import NodeLoads, mark_unknown, shares_of_room
from matching.planning.placement import Placed
from matching.planning.prepared import PreparedProblem, prepare
from matching.planning.reasons.wording import PENDING, may_not_stay
from matching.planning.write_plan import write_plan
from matching.preferences import MatchedLoads
from matching.problem import Problem

_STAY = "no node that takes it would make the network use of the nodes more even"


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
        prepared = prepare(mark_unknown(problem, [self.axis]))
        loads = shares_of_room(prepared, {self.axis: 1.0})
        objective = LoadObjective(loads, variance_of, "the variance of the nodes' network use", valued=_square_percent)
        draft = _NetworkPlacement(prepared, loads, self.axis).draft(self.gain)
        return write_plan(self.name, prepared, limited_outcome(prepared, draft, objective))


class _NetworkPlacement:
    """The network use of the nodes while pods are placed and moved."""

    def __init__(self, prepared: PreparedProblem, loads: NodeLoads, axis: str) -> None:
        self._prepared, self._loads, self._axis = prepared, loads, axis
        self._at = np.where(prepared.arrays.pending, NOWHERE, prepared.arrays.current)
        self._use = loads.of(self._at)
        self._ledger = Ledger(prepared.arrays, self._at)
        self._why: dict[int, tuple[str, ...]] = {}
        self._ranks: dict[int, int] = {}

    def draft(self, gain: float) -> Draft:
        for pod in self._pending_order().tolist():
            self._place(pod)
        for pod in self._running_order().tolist():
            self._move(pod, gain)
        return Draft(Placed(self._at), self._why, self._ranks, _STAY, notes=tuple(self._unknown_notes()))

    def _unknown_notes(self) -> Iterator[str]:
        """Otherwise a plan without moves would look as if the loads were even."""
        for what, group in (("pods", self._prepared.problem.pods), ("nodes", self._prepared.problem.nodes)):
            unknown = sum(self._axis in each.unknown for each in group)
            if unknown:
                missing = f"their {self._axis} is neither stated nor measured"
                yield f"{unknown} of {len(group)} {what} are left out: {missing}"

    def _pending_order(self) -> Ints:
        pods = np.flatnonzero(self._prepared.arrays.pending)
        priority = np.array([self._prepared.arrays.pods[pod].priority for pod in pods], dtype=np.int64)
        return pods[np.argsort(-priority, kind="stable")]

    def _running_order(self) -> Ints:
        current = self._prepared.arrays.current
        pods = np.flatnonzero(self._prepared.movable & (current != NOWHERE))
        return pods[np.argsort(-self._loads.sizes()[pods], kind="stable")]

    def _place(self, pod: int) -> None:
        possible = self._prepared.candidates.of(pod) & self._ledger.fits(pod)
        known = possible & self._loads.counted
        if not possible.any():
            return
        if self._axis in self._prepared.arrays.pods[pod].unknown or not known.any():
            node = self._prepared.preferences.choose(pod, possible, MatchedLoads(self._prepared.arrays, self._at))
            self._put(pod, node, (PENDING, f"its {self._axis} is unknown: nearest fit"))
            return
        variance = self._variance(pod)
        node = int(np.where(known, variance, np.inf).argmin())
        self._put(pod, node, (PENDING, self._why_node(variance, known, node)))

    def _move(self, pod: int, gain: float) -> None:
        current = int(self._at[pod])
        allowed = self._prepared.candidates.of(pod)
        if allowed[current] and not self._loads.counted[current]:
            return
        self._ledger.take(pod, current)
        self._use[current] -= self._added(pod)[current]
        possible = allowed & self._ledger.fits(pod) & self._loads.counted
        variance = self._variance(pod)
        best = int(np.where(possible, variance, np.inf).argmin()) if possible.any() else current
        if allowed[current] and variance[current] - variance[best] < max(gain, 10.0**-DECIMALS):
            best = current
        self._put(pod, best, (self._why_pod(pod, variance, best), self._why_node(variance, possible, best)))

    def _why_pod(self, pod: int, variance: Floats, best: int) -> str:
        current = int(self._prepared.arrays.current[pod])
        if refused := self._prepared.candidates.why_not(pod, current):
            return may_not_stay(self._prepared.arrays.nodes[current].name, refused)
        before, after = _square_percent(variance[current]), _square_percent(variance[best])
        return f"the variance of the nodes' {self._axis} use falls from {before} to {after}"

    def _put(self, pod: int, node: int, why: tuple[str, ...]) -> None:
        self._ledger.put(pod, node)
        self._use[node] += self._added(pod)[node]
        self._at[pod] = node
        self._why[pod] = why

    def _added(self, pod: int) -> Floats:
        return self._loads.added_by(pod)

    def _variance(self, pod: int) -> Floats:
        """If the pod were on each node; infinite where that is unknown."""
        counted = self._loads.counted
        found = np.full(len(counted), np.inf)
        found[counted] = variances(self._use[counted], self._added(pod)[counted])
        return found

    def _why_node(self, variance: Floats, possible: Mask, node: int) -> str:
        score = scores(np.where(possible, variance, 0.0), possible)[node]
        name = self._prepared.arrays.nodes[node].name
        return f"{name} scores {score:.1f} of {HIGHEST:g} among {int(possible.sum())}"


def variance_of(use: Floats) -> float:
    return float(use.var()) if len(use) else 0.0


def _square_percent(value: float) -> str:
    return f"{value * 1e4:.2f} %²"
