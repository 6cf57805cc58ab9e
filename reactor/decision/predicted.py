"""Pods that should leave before their probes fail: their node will be asked for more than it has."""

from __future__ import annotations

from reactor.cluster.records import Pod
from reactor.decision.eligibility import (
    ALLOWED_NOW,
    COOLED_DOWN,
    MOVABLE_NOW,
    PROTECTED,
    STEERABLE,
    Eligibility,
)
from reactor.signals.probe_counts import ProbeCounts
from reactor.state.foresight import FULL, NodeOutlook
from reactor.state.happiness import PodHappiness

LEAST_TRUST = 0.5
"""While fewer forecasts of a full node come true, nobody moves by them."""
_RELIEF = 0.95
"""A pod is enough if the node is expected to stay below this share of its CPU without it."""
_CHECKS = (*PROTECTED, *STEERABLE, *ALLOWED_NOW, *MOVABLE_NOW, *COOLED_DOWN)


def predicted_pods(eligibility: Eligibility) -> list[tuple[Pod, PodHappiness, str]]:
    """For each node that will be full, one pod: the smallest that is enough, or else the largest. The planner decides
    whether a move pays, and may choose others."""
    snapshot = eligibility.snapshot
    if snapshot.foresight_trust < LEAST_TRUST or snapshot.moves.under_way:
        return []
    found = []
    for name, outlook in sorted(snapshot.outlooks.items()):
        if outlook.full:
            pod = _chosen(name, outlook, eligibility)
            if pod is not None:
                namespace = snapshot.cluster.namespaces.get(pod.namespace)
                counts = snapshot.happiness[pod.uid].counts if pod.uid in snapshot.happiness else ProbeCounts()
                happiness = PodHappiness.of(pod, namespace, counts, eligibility.settings.happiness)
                trust = f"such forecasts are right with {snapshot.foresight_trust:.0%}"
                found.append((pod, happiness, f"{name} has {outlook}; {trust}"))
    return found


def _chosen(node: str, outlook: NodeOutlook, eligibility: Eligibility) -> Pod | None:
    snapshot = eligibility.snapshot
    cores = snapshot.cluster.nodes[node].allocatable.get("cpu", 0.0)
    pods = [
        (outlook.growth * (snapshot.usage.usage(pod.uid).cpu.fresh or 0.0) / cores, pod.key, pod)
        for pod in snapshot.cluster.pods_on(node)
        if not pod.finished
        and pod.deleting is None
        and eligibility.management.covers(pod)
        and snapshot.usage.knows(pod.uid)
        and eligibility.why_not(pod, _CHECKS) is None
    ]
    enough = [each for each in sorted(pods) if outlook.expected - each[0] <= _RELIEF * FULL]
    return (enough[0] if enough else max(pods))[2] if pods else None
