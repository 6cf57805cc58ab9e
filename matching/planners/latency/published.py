"""LATENCY's rule as it is published."""

from __future__ import annotations

from matching.planners.latency.step import LatencyState, LatencyStep, shown, waits
from matching.problem import Role


def published_step(state: LatencyState, measurements: int) -> LatencyStep:
    """Once enough pods are measured, the one with the longest round trip moves (the oldest measurement on a tie). A
    target only goes to a node where a probe is alone and has measured a shorter round trip; that probe makes way. A
    probe goes to a node that is not visited in this round. When neither is possible, the placement is stable until a
    new round."""
    if reason := waits(state, measurements):
        return LatencyStep(reason)
    farthest = state.farthest_first()[0]
    return _target_step(state, farthest) if state.role(farthest) is Role.TARGET else _probe_step(state, farthest)


def _target_step(state: LatencyState, target: str) -> LatencyStep:
    measured = state.measured()
    for probe in state.lone_probes():
        node = state.where[probe]
        if measured[probe].rtt >= measured[target].rtt:
            break
        why = f"the farthest, at {shown(measured[target].rtt)}; {probe} measured {shown(measured[probe].rtt)} on {node}"
        to = state.onward(probe, target)
        if to and state.may(target, node, probe):
            return LatencyStep(why, target, node, probe, to)
        if state.may(target, node, ""):
            return LatencyStep(why, target, node)
    return LatencyStep(f"stable: no probe has found a nearer node that takes {target}")


def _probe_step(state: LatencyState, probe: str) -> LatencyStep:
    unseen = state.unvisited(probe)
    if not unseen:
        return LatencyStep("stable: the farthest is a probe, and every node it may use was visited in this round")
    why = f"the farthest, at {shown(state.latency.last[probe].rtt)}: it tries a new node"
    return LatencyStep(why, probe, unseen[0])
