"""A pod's page, live or from a file: its evidence, the decision in force, why here and why not there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from matching.jsonform import plan_to_json
from matching.registry import load_planner
from reactor.cluster.records import Pod
from reactor.decision import Trigger, Wait, decide, judge
from reactor.happiness import probability, threshold_of
from reactor.management import Management
from reactor.planning import rematch_problem, why_fixed
from reactor.settings.model import Settings
from reactor.signals.probes import Evidence as Account
from reactor.snapshot import Snapshot
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
    """Why here, why not there, if somebody asked for a plan at this moment."""
    decision = decide(snapshot, settings, Trigger.DEMAND)
    planner = load_planner(settings.planner.name, settings.planner.parameters)
    plan = planner.plan(rematch_problem(snapshot, decision, settings))
    return placement_in(plan_to_json(plan), pod.uid, Origin("now", snapshot.at, plan.planner))


@dataclass(frozen=True, slots=True)
class Origin:
    """Which plan an answer comes from."""

    plan: str
    at: float
    planner: str


def placement_in(plan: dict[str, Any], uid: str, origin: Origin) -> PlacementView | None:
    """What a plan in its public form says about one pod; None when it does not name it."""
    for entry in (*plan["moves"], *plan["stays"], *plan["unplaced"]):
        if entry["uid"] == uid:
            here = tuple(entry.get("reasons") or (entry["reason"],))
            there = tuple(WhyNot(no["node"], no["reason"]) for no in entry.get("rejected", ()))
            return PlacementView(origin.plan, origin.at, origin.planner, here, there)
    return None


def _evidence(pod: Pod, snapshot: Snapshot, found: Account | None, settings: Settings) -> Evidence | None:
    if found is None:
        return None
    threshold = threshold_of(pod, snapshot.cluster.namespaces.get(pod.namespace), settings.happiness)
    value = probability(found.counts, settings.happiness.goodwill)
    sources = (
        EvidenceCount("events", 0.0, found.failures_by_events),
        EvidenceCount("counters", 0.0, found.failures_by_counters),
        EvidenceCount("kills", 0.0, found.failures_by_kills),
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
    mood = snapshot.moods.get(pod.uid)
    if mood is None or not mood.unhappy or not management.covers(pod) or pod.node is None:
        return None
    judged = judge(pod, snapshot, settings)
    if isinstance(judged, Wait):
        return InForce(DecisionKind.WAIT, judged.reason, judged.text, snapshot.at, judged.until)
    return InForce(DecisionKind.REMATCH, "unhappy", judged.cause, snapshot.at)
