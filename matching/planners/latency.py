"""`latency`: one step of LATENCY's rule per plan, on the measurements that are in the problem.

The source deletes the probe that a target replaces, and a Deployment creates a new one. Here the probe makes way by a
move of its own: to an unvisited node, else to the node that the target left. Without room on either, or with a budget
of one move, it stays with the target. So no pod loses its node.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from matching.array_types import NOWHERE, Floats, Ints
from matching.model.ledger import Ledger
from matching.parameters import ParameterError
from matching.plan import BlockingCause, Plan, Promise
from matching.planners.stable.serial_choice import serial_choice
from matching.planning.budget import stays_for_now, within_budget
from matching.planning.outcome import Choice, Outcome
from matching.planning.prepared import PreparedProblem, prepare
from matching.planning.reasons.wording import PENDING
from matching.planning.write_plan import write_plan
from matching.problem import Latency, LatencyMeasurement, Problem, Role


def with_measurement(latency: Latency, pod: str, rtt: float, at: float) -> Latency:
    """With one more measurement, unless a newer one of the pod is known."""
    known = latency.last.get(pod)
    if known is not None and known.at > at:
        return latency
    return replace(latency, last={**latency.last, pod: LatencyMeasurement(rtt, at)}, now=max(latency.now, at))


def after_moves(latency: Latency, pods: Iterable[str], nodes: Iterable[str], now: float) -> Latency:
    """After pods moved: their measurements are dropped, and the nodes they left and entered are visited."""
    gone = set(pods)
    last = {pod: measured for pod, measured in latency.last.items() if pod not in gone}
    return replace(latency, now=now, moved_at=now, last=last, visited=latency.visited | set(nodes))


def current_round(latency: Latency, quiet: float) -> Latency:
    """The same, or after `quiet` seconds without a move a new round in which no node is visited."""
    if latency.now - latency.moved_at < quiet:
        return latency
    return replace(latency, visited=frozenset())


@dataclass(frozen=True, slots=True)
class LatencyStep:
    why: str
    pod: str = ""
    """The pod that moves; empty when all stay, and then `why` says why."""
    node: str = ""
    replaced: str = ""
    """The probe that the target replaces."""
    to: str = ""
    """The node that this probe moves to; empty when no node takes it and it stays with the target."""


May = Callable[[str, str, str], bool]
"""Whether the pod may go to the node if the other pod (none, when empty) were gone from its node."""


@dataclass(frozen=True, slots=True)
class LatencyState:
    latency: Latency
    where: Mapping[str, str]
    """The node of each pod with a role that has one."""
    movable: frozenset[str]
    nodes: tuple[str, ...]
    """All of them, in the order in which they are tried."""
    may: May

    def measured(self) -> dict[str, LatencyMeasurement]:
        return {pod: self.latency.last[pod] for pod in sorted(self.where) if pod in self.latency.last}

    def unvisited(self, pod: str) -> list[str]:
        seen = self.latency.visited | set(self.where.values())
        return [node for node in self.nodes if node not in seen and self.may(pod, node, "")]

    def role(self, pod: str) -> Role:
        return self.latency.roles[pod]

    def lone_probes(self) -> list[str]:
        """Measured probes that are alone on their node, the nearest first."""
        measured, pods_on = self.measured(), Counter(self.where.values())
        alone = [pod for pod in measured if self.role(pod) is Role.PROBE and pods_on[self.where[pod]] == 1]
        return sorted(alone, key=lambda pod: measured[pod].rtt)


def next_step(state: LatencyState, measurements: int) -> LatencyStep:
    """Once enough pods are measured, the one with the longest round trip moves (the oldest measurement on a tie). A
    target only goes to a node where a probe is alone and has measured a shorter round trip; that probe makes way. A
    probe goes to a node that is not visited in this round. When neither is possible, the placement is stable until a
    new round."""
    measured = state.measured()
    if len(measured) < measurements:
        return LatencyStep(f"{len(measured)} of {measurements} measurements are there")
    free = [pod for pod in measured if pod in state.movable]
    if not free:
        return LatencyStep("none of the measured pods may be moved")
    worst = max(free, key=lambda pod: (measured[pod].rtt, -measured[pod].at))
    return _target_step(state, worst) if state.role(worst) is Role.TARGET else _probe_step(state, worst)


def _target_step(state: LatencyState, worst: str) -> LatencyStep:
    measured, left = state.measured(), state.where[worst]
    for probe in state.lone_probes():
        node = state.where[probe]
        if measured[probe].rtt >= measured[worst].rtt:
            break
        why = f"the farthest, at {shown(measured[worst].rtt)}; {probe} measured {shown(measured[probe].rtt)} on {node}"
        onward = state.unvisited(probe) if probe in state.movable else []
        if not onward and probe in state.movable and state.may(probe, left, worst):
            onward = [left]
        if onward and state.may(worst, node, probe):
            return LatencyStep(why, worst, node, probe, onward[0])
        if state.may(worst, node, ""):
            return LatencyStep(why, worst, node)
    return LatencyStep(f"stable: no probe has found a nearer node that takes {worst}")


def _probe_step(state: LatencyState, worst: str) -> LatencyStep:
    unseen = state.unvisited(worst)
    if not unseen:
        return LatencyStep("stable: the farthest is a probe, and every node it may use was visited in this round")
    why = f"the farthest, at {shown(state.latency.last[worst].rtt)}: it tries a new node"
    return LatencyStep(why, worst, unseen[0])


def shown(rtt: float) -> str:
    return f"{rtt * 1000:.0f} ms"


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
        prepared = prepare(problem)
        latency = problem.latency or Latency(0.0, 0.0)
        self._check(latency, problem)
        step = _LatencyStepPlanner(prepared, current_round(latency, self.quiet))
        return write_plan(self.name, prepared, step.outcome(self.measurements))

    def _check(self, latency: Latency, problem: Problem) -> None:
        here = {pod.key for pod in problem.pods}
        targets = sum(role is Role.TARGET for pod, role in latency.roles.items() if pod in here)
        if targets and self.measurements <= targets:
            raise ParameterError(
                "measurements", f"is {self.measurements}; it must exceed the number of targets, {targets}"
            )


class _LatencyStepPlanner:
    """One step, as far as constraints, room and budget allow it."""

    def __init__(self, prepared: PreparedProblem, latency: Latency) -> None:
        arrays = prepared.arrays
        self._prepared, self._latency = prepared, latency
        self._pods = {pod.key: at for at, pod in enumerate(arrays.pods) if pod.key in latency.roles}
        self._nodes = {node.name: at for at, node in enumerate(arrays.nodes)}
        self._at = arrays.current.copy()
        self._ledger = Ledger(arrays, self._at)

    def outcome(self, measurements: int) -> Outcome:
        step = next_step(self._state(), measurements)
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
        if step.replaced:
            yield [(self._pods[step.replaced], self._nodes[step.to]), main]
        if not step.replaced or self._may_go(step.pod, step.node, ""):
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
        if key == self.step.replaced:
            return f"gives way to {self.step.pod}", f"{name} is to be measured next"
        return PENDING, f"{name}: {self._why_placed(key, name, float(self.costs(pod)[self.at[pod]]))}"

    def why_stayed(self, pods: Ints) -> Sequence[str]:
        keys = (self.prepared.arrays.pods[pod].key for pod in pods.tolist())
        why = self.step.why if not self.step.pod else "one pod goes at a time, and another one is farther"
        return [why if key in self.latency.roles else "neither a target nor a probe" for key in keys]

    def costs(self, pod: int) -> Floats:  # noqa: ARG002  (a node has one latency for all pods)
        arrays = self.prepared.arrays
        found = np.full(len(arrays.nodes), np.inf)
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
