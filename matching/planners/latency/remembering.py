"""Our rule: probes try the nodes, and what they measured is remembered, so that a target seldom moves twice.

A target moves when more targets are farther than the nearest known node than nodes are left to try. Then this node
belongs to the nearest ones, whatever the others measure, and one step after the last trial all targets are there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from matching.planners.latency.step import LatencyState, LatencyStep, shown, waits
from matching.problem import Role


@dataclass(frozen=True, slots=True)
class Thresholds:
    """As shares of a target's round trip."""

    gain: float
    """A nearer node must save at least so much."""
    at_once: float
    """A target goes to a node with at most so much at once, before the others are tried."""


def remembering_step(state: LatencyState, measurements: int, thresholds: Thresholds) -> LatencyStep:
    """The farthest target goes to the nearest known node when that is worth it, and the farthest probe that can tries a
    new node, in the same step."""
    if reason := waits(state, measurements):
        return LatencyStep(reason)
    trial = _next_trial(state)
    step = _target_step(state, len(trial[1]) if trial else 0, thresholds)
    if trial is None:
        return step or LatencyStep(
            "stable: all nodes were tried in this round, and no target is farther than a free node"
        )
    probe, untried = trial
    if step is None:
        return LatencyStep(f"nodes that are not measured in this round: {len(untried)}", probe, untried[0])
    if step.probe or untried[0] == step.node:
        return step
    return replace(step, probe=probe, to=untried[0])


def _next_trial(state: LatencyState) -> tuple[str, list[str]] | None:
    """The farthest probe that has something to try, and these nodes."""
    for pod in state.farthest_first():
        if state.role(pod) is Role.PROBE and (nodes := state.unvisited(pod)):
            return pod, nodes
    return None


def _target_step(state: LatencyState, untried: int, thresholds: Thresholds) -> LatencyStep | None:
    measured = state.measured()
    targets = [pod for pod in measured if state.role(pod) is Role.TARGET]
    farthest = next((pod for pod in state.farthest_first() if pod in targets), None)
    if farthest is None:
        return None
    rtt = measured[farthest].rtt
    for node, near in _free_nodes(state):
        if near > (1 - thresholds.gain) * rtt:
            return None
        farther = sum(measured[pod].rtt > near for pod in targets)
        if farther <= untried and near > thresholds.at_once * rtt:
            return None
        if (step := _step_to(state, farthest, node, near)) is not None:
            return step
    return None


def _free_nodes(state: LatencyState) -> list[tuple[str, float]]:
    """Known nodes without a target that none has left in this round, the nearest first."""
    measured = state.measured()
    known = {**state.latency.known, **{state.where[pod]: measured[pod].rtt for pod in measured}}
    held = {node for pod, node in state.where.items() if state.role(pod) is Role.TARGET}
    free = [(node, known[node]) for node in state.nodes if node in known and node not in held | state.latency.left]
    return sorted(free, key=lambda each: (each[1], each[0]))


def _step_to(state: LatencyState, target: str, node: str, rtt: float) -> LatencyStep | None:
    """None when the node does not take the target."""
    why = f"the farthest, at {shown(state.latency.last[target].rtt)}; {node} was measured at {shown(rtt)}"
    probe = next((probe for probe in state.lone_probes() if state.where[probe] == node), "")
    to = state.onward(probe, target) if probe else ""
    if to and state.may(target, node, probe):
        return LatencyStep(why, target, node, probe, to)
    return LatencyStep(why, target, node) if state.may(target, node, "") else None
