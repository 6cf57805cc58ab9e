"""LATENCY as a planner: one step of its rule per plan, on the measurements that are in the problem.

The source deletes the probe that a target replaces, and a Deployment brings a new one. Here a probe gives way by a
move of its own: to a node that nobody has visited, else to the one that the target has left; with no room on either,
or a budget of one move, it stays beside the target. So nobody loses a node.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from matching.arrays import NOWHERE, Floats, Ints
from matching.case import Case, open_case
from matching.latency import Latency, Role, round_of
from matching.ledger import Ledger
from matching.outcome import Choice, Outcome
from matching.parameters import ParameterError
from matching.plan import Cause, Plan, Promise
from matching.planners.budget import stays_for_now, within_budget
from matching.planners.latency_rule import Scene, Step, next_step, shown
from matching.planners.serial_choice import serial_choice
from matching.problem import Problem
from matching.reasons.wording import PENDING
from matching.writing import write_plan


@dataclass(frozen=True, slots=True)
class LatencyPlanner:
    measurements: int = 3
    """Pods that must be measured before one is moved; more than there are targets."""
    quiet: float = 30.0
    """Seconds without a move after which a new round begins and all nodes may be visited again."""

    name: ClassVar[str] = "latency"
    waives: ClassVar[frozenset[Promise]] = frozenset()

    def __post_init__(self) -> None:
        if self.measurements < 1:
            raise ParameterError("measurements", f"is {self.measurements}; it must be at least 1")
        if self.quiet < 0:
            raise ParameterError("quiet", f"is {self.quiet:g}; it must be at least 0")

    def plan(self, problem: Problem) -> Plan:
        case = open_case(problem)
        latency = problem.latency or Latency(0.0, 0.0)
        self._check(latency, problem)
        return write_plan(self.name, case, _One(case, round_of(latency, self.quiet)).outcome(self.measurements))

    def _check(self, latency: Latency, problem: Problem) -> None:
        here = {pod.key for pod in problem.pods}
        targets = sum(role is Role.TARGET for pod, role in latency.roles.items() if pod in here)
        if targets and self.measurements <= targets:
            raise ParameterError(
                "measurements", f"is {self.measurements}; it must exceed the number of targets, {targets}"
            )


class _One:
    """One step, as far as rules, room and budget allow it."""

    def __init__(self, case: Case, latency: Latency) -> None:
        arrays = case.arrays
        self._case, self._latency = case, latency
        self._pods = {pod.key: at for at, pod in enumerate(arrays.pods) if pod.key in latency.roles}
        self._nodes = {node.name: at for at, node in enumerate(arrays.nodes)}
        self._at = arrays.home.copy()
        self._ledger = Ledger(arrays, self._at)

    def outcome(self, measurements: int) -> Outcome:
        step = next_step(self._scene(), measurements)
        notes = (step.why, *self._do(step)) if not step.pod else self._do(step)
        choice = self._with_pending()
        reasoning = _Reasoning(self._case, choice.at, self._latency, step)
        return Outcome(choice, choice, Cause.NOT_BY_PREFERENCE, notes=notes, reasoning=reasoning)

    def _scene(self) -> Scene:
        placed = {key: pod for key, pod in self._pods.items() if self._at[pod] != NOWHERE}
        where = {key: self._case.arrays.nodes[self._at[pod]].name for key, pod in placed.items()}
        movable = frozenset(key for key, pod in placed.items() if self._case.movable[pod])
        return Scene(self._latency, where, movable, tuple(self._nodes), self._may)

    def _may(self, key: str, name: str, gone: str) -> bool:
        pod, node = self._pods[key], self._nodes[name]
        if not self._case.candidates.of(pod)[node]:
            return False
        away = [each for each in (pod, self._pods.get(gone)) if each is not None and self._at[each] != NOWHERE]
        for each in away:
            self._ledger.take(each, int(self._at[each]))
        fits = self._ledger.fits_on(pod, node)
        for each in away:
            self._ledger.put(each, int(self._at[each]))
        return fits

    def _do(self, step: Step) -> tuple[str, ...]:
        for goes in self._ways(step):
            if within_budget(self._case.arrays, self._after(goes)):
                for pod, _ in goes:
                    self._ledger.take(pod, int(self._at[pod]))
                for pod, node in goes:
                    self._ledger.put(pod, node)
                self._at = self._after(goes)
                return ()
        return (f"{step.pod} {stays_for_now(self._case.arrays.options)}",) if step.pod else ()

    def _ways(self, step: Step) -> Iterator[list[tuple[int, int]]]:
        """With the probe giving way, and for a budget of one move without, if there is room for both."""
        if not step.pod:
            return
        main = (self._pods[step.pod], self._nodes[step.node])
        if step.gives_way:
            yield [(self._pods[step.gives_way], self._nodes[step.to]), main]
        if not step.gives_way or self._may(step.pod, step.node, ""):
            yield [main]

    def _after(self, goes: list[tuple[int, int]]) -> Ints:
        at = self._at.copy()
        for pod, node in goes:
            at[pod] = node
        return at

    def _with_pending(self) -> Choice:
        """Nearest fit; but a probe goes where nobody has been and a target where a probe has been, if they may."""
        chosen = serial_choice(self._case, self._case.arrays.pending, self._at)
        self._at = chosen.at.copy()
        self._ledger = Ledger(self._case.arrays, self._at)
        for key, pod in sorted(self._pods.items()):
            if self._case.arrays.pending[pod] and self._at[pod] != NOWHERE:
                self._shift(key, pod)
        headroom = {pod: given for pod, given in chosen.headroom.items() if chosen.at[pod] == self._at[pod]}
        return Choice(self._at, self._case.movable, headroom)

    def _shift(self, key: str, pod: int) -> None:
        scene = self._scene()
        if scene.role(key) is Role.PROBE:
            wanted = scene.unvisited(key)
        else:
            wanted = [scene.where[probe] for probe in scene.scouts() if self._may(key, scene.where[probe], "")]
        if wanted:
            self._ledger.take(pod, int(self._at[pod]))
            self._at[pod] = self._nodes[wanted[0]]
            self._ledger.put(pod, int(self._at[pod]))


@dataclass(frozen=True, slots=True)
class _Reasoning:
    """Other nodes are compared by what was measured on them."""

    case: Case
    at: Ints
    latency: Latency
    step: Step

    def rank(self, pod: int) -> int:
        costs = self.costs(pod)
        return 1 + int((costs < costs[self.at[pod]]).sum())

    def why_moved(self, pod: int) -> tuple[str, ...]:
        key, name = self.case.arrays.pods[pod].key, self.case.arrays.nodes[self.at[pod]].name
        if key == self.step.pod:
            return self.step.why, f"{name}: {self.worded(float(self.costs(pod)[self.at[pod]]))}"
        if key == self.step.gives_way:
            return f"gives way to {self.step.pod}", f"{name} is to be measured next"
        return PENDING, f"{name}: {self._why_placed(key, name, float(self.costs(pod)[self.at[pod]]))}"

    def why_stayed(self, pod: int) -> str:
        key = self.case.arrays.pods[pod].key
        if key not in self.latency.roles:
            return "neither a target nor a probe"
        return self.step.why if not self.step.pod else "one pod goes at a time, and another one is farther"

    def costs(self, pod: int) -> Floats:  # noqa: ARG002  (a node is as far for every pod)
        arrays = self.case.arrays
        found = np.full(len(arrays.nodes), np.inf)
        for at, each in enumerate(arrays.pods):
            if each.key in self.latency.roles and each.key in self.latency.last and arrays.home[at] != NOWHERE:
                found[arrays.home[at]] = min(found[arrays.home[at]], self.latency.last[each.key].rtt)
        return found

    def worded(self, cost: float) -> str:
        return f"measured at {shown(cost)}" if np.isfinite(cost) else "nobody has measured it"

    def _why_placed(self, key: str, name: str, cost: float) -> str:
        role = self.latency.roles.get(key)
        if role is Role.PROBE and name not in self.latency.visited:
            return "not visited in this round"
        return self.worded(cost) if role is Role.TARGET and np.isfinite(cost) else "nearest fit"
