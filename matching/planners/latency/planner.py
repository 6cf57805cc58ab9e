"""The planners: a step of a rule as a plan, as far as constraints, room and budget allow it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np

from matching.array_types import NOWHERE, Floats, Ints
from matching.model.ledger import Ledger
from matching.parameters import ParameterError
from matching.plan import BlockingCause, Plan, Promise
from matching.planners.latency.published import published_step
from matching.planners.latency.remembering import Thresholds, remembering_step
from matching.planners.latency.round import current_round
from matching.planners.latency.step import LatencyState, LatencyStep, shown
from matching.planners.stable.serial_choice import serial_choice
from matching.planning.budget import stays_for_now, within_budget
from matching.planning.outcome import Choice, Outcome
from matching.planning.prepared import PreparedProblem, prepare
from matching.planning.reasons.wording import PENDING
from matching.planning.write_plan import write_plan
from matching.problem import Latency, Problem, Role

Rule = Callable[[LatencyState, int], LatencyStep]
"""From what is known and the least number of measurements to a step."""


@dataclass(frozen=True, slots=True)
class LatencyPlanner:
    measurements: int = 3
    """Pods that must be measured before one is moved; more than there are targets."""
    quiet: float = 30.0
    """Seconds without a move after which a new round begins and all nodes may be visited again."""
    gain: float = 0.05
    """Share of its round trip that a target must save by a move."""
    at_once: float = 0.25
    """A target goes to a node with at most this share of its round trip before all nodes are tried."""

    name: ClassVar[str] = "latency"
    waives: ClassVar[frozenset[Promise]] = frozenset()

    def __post_init__(self) -> None:
        _check_parameters(self.measurements, self.quiet)
        for name, value in (("gain", self.gain), ("atOnce", self.at_once)):
            if not 0 <= value < 1:
                raise ParameterError(name, f"is {value:g}; it must be at least 0 and below 1")

    def plan(self, problem: Problem) -> Plan:
        rule = partial(remembering_step, thresholds=Thresholds(self.gain, self.at_once))
        return _plan(self.name, problem, rule, self.measurements, self.quiet)


@dataclass(frozen=True, slots=True)
class LatencyPublishedPlanner:
    """The thesis' rule, which forgets a node when its probe moves on."""

    measurements: int = 3
    """As of `latency`."""
    quiet: float = 30.0
    """As of `latency`."""

    name: ClassVar[str] = "latency-published"
    waives: ClassVar[frozenset[Promise]] = frozenset()

    def __post_init__(self) -> None:
        _check_parameters(self.measurements, self.quiet)

    def plan(self, problem: Problem) -> Plan:
        return _plan(self.name, problem, published_step, self.measurements, self.quiet)


def _check_parameters(measurements: int, quiet: float) -> None:
    if measurements < 1:
        raise ParameterError("measurements", f"is {measurements}; it must be at least 1")
    if quiet < 0:
        raise ParameterError("quiet", f"is {quiet:g}; it must be at least 0")


def _plan(name: str, problem: Problem, rule: Rule, measurements: int, quiet: float) -> Plan:
    prepared = prepare(problem)
    latency = problem.latency or Latency(0.0, 0.0)
    here = {pod.key for pod in problem.pods}
    targets = sum(role is Role.TARGET for pod, role in latency.roles.items() if pod in here)
    if targets and measurements <= targets:
        raise ParameterError("measurements", f"is {measurements}; it must exceed the number of targets, {targets}")
    step = _LatencyStepPlanner(prepared, current_round(latency, quiet))
    return write_plan(name, prepared, step.outcome(rule, measurements))


class _LatencyStepPlanner:
    def __init__(self, prepared: PreparedProblem, latency: Latency) -> None:
        arrays = prepared.arrays
        self._prepared, self._latency = prepared, latency
        self._pods = {pod.key: at for at, pod in enumerate(arrays.pods) if pod.key in latency.roles}
        self._nodes = {node.name: at for at, node in enumerate(arrays.nodes)}
        self._at = arrays.current.copy()
        self._ledger = Ledger(arrays, self._at)

    def outcome(self, rule: Rule, measurements: int) -> Outcome:
        step = rule(self._state(), measurements)
        notes = (step.why, *self._apply(step)) if not step.pod else self._apply(step)
        choice = self._with_pending()
        reasons = _LatencyReasons(self._prepared, choice.at, self._latency, step)
        return Outcome(choice, choice, BlockingCause.NOT_BY_PREFERENCE, notes=notes, reasons=reasons)

    def _state(self) -> LatencyState:
        placed = {key: pod for key, pod in self._pods.items() if self._at[pod] != NOWHERE}
        where = {key: self._prepared.arrays.nodes[self._at[pod]].name for key, pod in placed.items()}
        movable = frozenset(key for key, pod in placed.items() if self._prepared.movable[pod])
        return LatencyState(self._latency, where, movable, tuple(self._nodes), self._may_go)

    def _may_go(self, key: str, name: str, gone: str) -> bool:
        pod, node = self._pods[key], self._nodes[name]
        if not self._prepared.candidates.of(pod)[node]:
            return False
        away = [each for each in (pod, self._pods.get(gone)) if each is not None and self._at[each] != NOWHERE]
        for each in away:
            self._ledger.take(each, int(self._at[each]))
        fits = self._ledger.fits_on(pod, node)
        for each in away:
            self._ledger.put(each, int(self._at[each]))
        return fits

    def _apply(self, step: LatencyStep) -> tuple[str, ...]:
        for moves in self._variants(step):
            if within_budget(self._prepared.arrays, self._after(moves)):
                for pod, _ in moves:
                    self._ledger.take(pod, int(self._at[pod]))
                for pod, node in moves:
                    self._ledger.put(pod, node)
                self._at = self._after(moves)
                return ()
        return (f"{step.pod} {stays_for_now(self._prepared.arrays.options)}",) if step.pod else ()

    def _variants(self, step: LatencyStep) -> Iterator[list[tuple[int, int]]]:
        """With the move of the probe, and for a budget of one move without it, if there is room for both."""
        if not step.pod:
            return
        main = (self._pods[step.pod], self._nodes[step.node])
        if step.probe:
            yield [(self._pods[step.probe], self._nodes[step.to]), main]
        if not step.probe or self._may_go(step.pod, step.node, ""):
            yield [main]

    def _after(self, moves: list[tuple[int, int]]) -> Ints:
        at = self._at.copy()
        for pod, node in moves:
            at[pod] = node
        return at

    def _with_pending(self) -> Choice:
        """By preference; but a probe goes to an unvisited node and a target to the node of a probe, if they may."""
        chosen = serial_choice(self._prepared, self._prepared.arrays.pending, self._at)
        self._at = chosen.at.copy()
        self._ledger = Ledger(self._prepared.arrays, self._at)
        for key, pod in sorted(self._pods.items()):
            if self._prepared.arrays.pending[pod] and self._at[pod] != NOWHERE:
                self._redirect(key, pod)
        headroom = {pod: given for pod, given in chosen.headroom.items() if chosen.at[pod] == self._at[pod]}
        return Choice(self._at, self._prepared.movable, headroom)

    def _redirect(self, key: str, pod: int) -> None:
        state = self._state()
        if state.role(key) is Role.PROBE:
            wanted = state.unvisited(key)
        else:
            wanted = [state.where[probe] for probe in state.lone_probes() if self._may_go(key, state.where[probe], "")]
        if wanted:
            self._ledger.take(pod, int(self._at[pod]))
            self._at[pod] = self._nodes[wanted[0]]
            self._ledger.put(pod, int(self._at[pod]))


@dataclass(frozen=True, slots=True)
class _LatencyReasons:
    """Other nodes are compared by what was measured on them."""

    prepared: PreparedProblem
    at: Ints
    latency: Latency
    step: LatencyStep

    def rank(self, pod: int) -> int:
        costs = self.costs(pod)
        return 1 + int((costs < costs[self.at[pod]]).sum())

    def why_moved(self, pod: int) -> tuple[str, ...]:
        key, name = self.prepared.arrays.pods[pod].key, self.prepared.arrays.nodes[self.at[pod]].name
        if key == self.step.pod:
            return self.step.why, f"{name}: {self.describe_cost(float(self.costs(pod)[self.at[pod]]))}"
        if key == self.step.probe:
            current = self.prepared.arrays.nodes[self.prepared.arrays.current[pod]].name
            why = f"gives way to {self.step.pod}" if current == self.step.node else "tries a new node"
            return why, f"{name} is to be measured next"
        return PENDING, f"{name}: {self._why_placed(key, name, float(self.costs(pod)[self.at[pod]]))}"

    def why_stayed(self, pods: Ints) -> Sequence[str]:
        keys = (self.prepared.arrays.pods[pod].key for pod in pods.tolist())
        why = self.step.why if not self.step.pod else "in this step another pod goes"
        return [why if key in self.latency.roles else "neither a target nor a probe" for key in keys]

    def costs(self, pod: int) -> Floats:  # noqa: ARG002  (a node has one latency for all pods)
        arrays = self.prepared.arrays
        found = np.array([self.latency.known.get(node.name, np.inf) for node in arrays.nodes])
        for at, each in enumerate(arrays.pods):
            if each.key in self.latency.roles and each.key in self.latency.last and arrays.current[at] != NOWHERE:
                found[arrays.current[at]] = min(found[arrays.current[at]], self.latency.last[each.key].rtt)
        return found

    def describe_cost(self, cost: float) -> str:
        return f"measured at {shown(cost)}" if np.isfinite(cost) else "not measured"

    def _why_placed(self, key: str, name: str, cost: float) -> str:
        role = self.latency.roles.get(key)
        if role is Role.PROBE and name not in self.latency.visited:
            return "not visited in this round"
        return self.describe_cost(cost) if role is Role.TARGET and np.isfinite(cost) else "nearest fit"
