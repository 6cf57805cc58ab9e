"""A pod's page, live or from a file: its evidence, the decision in force, why here and why not there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from matching.explain import explain
from reactor.cluster.records import Pod
from reactor.decision.decide import Trigger, Wait, decide, judge
from reactor.decision.managed import Management
from reactor.planning.problems import rematch_problem, why_fixed
from reactor.settings.model import Settings
from reactor.signals.probes import ProbeEvidence as Account
from reactor.state.happiness import probability, threshold_of
from reactor.state.snapshot import Snapshot
from reactor.web.view import (
    AxisView,
    DecisionKind,
    DecisionView,
    Evidence,
    EvidenceCount,
    InForce,
    PlacementView,
    PodView,
    ProbeMessage,
    WhyNot,
)


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of one pod besides the snapshot."""

    evidence: Account | None
    placement: PlacementView | None = None
    history: tuple[DecisionView, ...] = ()


def pod_view(pod: Pod, snapshot: Snapshot, settings: Settings, facts: Facts) -> PodView:
    management = Management.of(settings)
    workload = snapshot.cluster.workload_of(pod)
    return PodView(
        uid=pod.uid,
        namespace=pod.namespace,
        name=pod.name,
        node=pod.node,
        phase="Terminating" if pod.deleting is not None else pod.phase,
        ready=pod.ready,
        restarts=sum(container.restarts for container in pod.containers),
        created=pod.created,
        workload=f"{workload.kind} {workload.name}" if workload else "",
        scheduler=pod.scheduler_name,
        managed=management.covers(pod),
        fixed=why_fixed(pod, snapshot, settings, management),
        happiness=_evidence(pod, snapshot, facts.evidence, settings),
        resources=_resources(pod, snapshot),
        decision=_in_force(pod, snapshot, settings, management),
        placement=facts.placement,
        history=facts.history,
    )


def placement_now(pod: Pod, snapshot: Snapshot, settings: Settings) -> PlacementView | None:
    """Why here, why not there, as things are at this moment; None for a pod that holds and wants no room."""
    problem = rematch_problem(snapshot, decide(snapshot, settings, Trigger.DEMAND), settings)
    if all(guest.uid != pod.uid for guest in problem.pods):
        return None
    answer = explain(problem, pod.uid)
    there = tuple(WhyNot(no.node, no.reason) for no in answer.why_not)
    return PlacementView("now", snapshot.at, settings.planner.name, answer.why_here, there)


@dataclass(frozen=True, slots=True)
class Origin:
    """Which plan an answer comes from."""

    plan: str
    at: float
    planner: str


def placement_in(plan: dict[str, Any], uid: str, origin: Origin) -> PlacementView | None:
    """Why a plan in its public form moves a pod, and whither; None when it does not."""
    for move in plan["moves"]:
        if move["uid"] == uid:
            here = (f"{move['from'] or 'pending'} -> {move['to']}", *move["reasons"])
            there = tuple(WhyNot(no["node"], no["reason"]) for no in move["rejected"])
            return PlacementView(origin.plan, origin.at, origin.planner, here, there)
    return None


def _evidence(pod: Pod, snapshot: Snapshot, found: Account | None, settings: Settings) -> Evidence | None:
    if found is None:
        return None
    threshold = threshold_of(pod, snapshot.cluster.namespaces.get(pod.namespace), settings.happiness)
    value = probability(found.counts, settings.happiness.goodwill)
    sources = (
        EvidenceCount("events", found.failures_by_events),
        EvidenceCount("counters", found.failures_by_counters),
        EvidenceCount("kills", found.failures_by_kills),
    )
    return Evidence(
        value=value,
        threshold=threshold.value,
        threshold_source=threshold.source + (f" ({threshold.problem})" if threshold.problem else ""),
        happy=value >= threshold.value,
        successes=found.counts.successes,
        failures=found.counts.failures,
        goodwill=settings.happiness.goodwill,
        half_life=settings.happiness.half_life,
        sources=sources,
        last_failure=found.last_failure,
        messages=tuple(ProbeMessage(message.at, 1, message.text) for message in found.messages),
    )


def _resources(pod: Pod, snapshot: Snapshot) -> tuple[AxisView, ...]:
    usage, peak = snapshot.usage.usage(pod.uid), snapshot.usage.peak(pod.uid)
    node = snapshot.cluster.nodes.get(pod.node or "")
    room = node.allocatable if node else {}
    return (
        AxisView("cpu", "cores", usage.cpu.fresh, pod.requests.get("cpu", 0.0), peak.cpu, room.get("cpu")),
        AxisView(
            "memory", "bytes", usage.memory.fresh, pod.requests.get("memory", 0.0), peak.memory, room.get("memory")
        ),
    )


def _in_force(pod: Pod, snapshot: Snapshot, settings: Settings, management: Management) -> InForce | None:
    """What would be decided about this pod right now."""
    mood = snapshot.happiness.get(pod.uid)
    if mood is None or not mood.unhappy or not management.covers(pod) or pod.node is None:
        return None
    judged = judge(pod, snapshot, settings)
    if isinstance(judged, Wait):
        return InForce(DecisionKind.WAIT, judged.reason, judged.text, snapshot.at, judged.until)
    return InForce(DecisionKind.REMATCH, "unhappy", judged.cause, snapshot.at)
