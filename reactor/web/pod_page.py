"""The page of a pod, from the live cluster or from files: happiness, decision, why this node and not the others."""

from __future__ import annotations

from dataclasses import replace

from matching.explain import explain
from matching.plan import Plan
from matching.problem import Problem
from reactor.cluster.records import Pod
from reactor.cluster.view import ClusterView
from reactor.decision.decide import Trigger, Wait, decide, decide_for
from reactor.decision.eligibility import Eligibility
from reactor.forecasts.pod_forecasts import peak_choice
from reactor.history.levels import Axis
from reactor.planning.problems import rematch_problem
from reactor.record.history_reader import HistoryEntry, HistoryKind
from reactor.record.unhappy_pods import evidence_parts
from reactor.settings.model import Settings
from reactor.signals.probes import ProbeEvidence
from reactor.state.happiness import half_life, probability
from reactor.state.snapshot import Snapshot
from reactor.state.thresholds import threshold_of
from reactor.web.view import (
    AxisView,
    CurrentDecision,
    Evidence,
    EvidenceCount,
    ForecastView,
    PlacementView,
    PodView,
    ProbeMessage,
    WhyNot,
)


def pod_view(
    pod: Pod,
    eligibility: Eligibility,
    evidence: ProbeEvidence | None,
    placement: PlacementView | None,
    history: tuple[HistoryEntry, ...] = (),
) -> PodView:
    snapshot, settings = eligibility.snapshot, eligibility.settings
    fixed = fixed_text(pod, eligibility)
    return PodView(
        uid=pod.uid,
        namespace=pod.namespace,
        name=pod.name,
        node=pod.node,
        phase=pod.status,
        ready=pod.ready,
        restarts=sum(container.restarts for container in pod.containers),
        created=pod.created,
        workload=workload_text(pod, snapshot.cluster),
        scheduler=pod.scheduler_name,
        managed=eligibility.management.covers(pod),
        fixed=fixed,
        happiness=_evidence(pod, snapshot, evidence, settings),
        resources=pod_resources(pod, snapshot),
        decision=_decision(pod, eligibility),
        placement=placement,
        history=history,
        moved_by="" if fixed or pod.node is None else eligibility.strategies.of(pod).reason,
    )


def workload_text(pod: Pod, cluster: ClusterView) -> str:
    """Kind and name; empty without a workload."""
    workload = cluster.workload_of(pod)
    return f"{workload.kind} {workload.name}" if workload else ""


def fixed_text(pod: Pod, eligibility: Eligibility) -> str:
    """Why the pod may not be moved; empty when it may."""
    ineligible = eligibility.why_not(pod)
    return "" if ineligible is None else str(ineligible)


def placement_now(pod: Pod, eligibility: Eligibility) -> PlacementView | None:
    """Why the pod is on its node and not on others, as the cluster is now; None if the pod is not in the problem.
    Why it may not be moved is told here only where it is not the pod's own `fixed`."""
    problem = rematch_problem(eligibility, decide(eligibility, Trigger.DEMAND))
    if all(other.uid != pod.uid for other in problem.pods):
        return None
    happiness = eligibility.snapshot.happiness.get(pod.uid)
    if happiness is not None and happiness.unhappy:
        problem = _with_unhappy(problem, pod.uid)
    answer = explain(problem, pod.uid)
    more = answer.fixed not in ("", fixed_text(pod, eligibility))
    here = (f"may not be moved: {answer.fixed}", *answer.why_here) if more else answer.why_here
    there = tuple(WhyNot(no.node, no.reason) for no in answer.why_not)
    return PlacementView("now", eligibility.snapshot.at, eligibility.settings.planner.name, here, there)


def _with_unhappy(problem: Problem, uid: str) -> Problem:
    """A pod for which the decision is to wait counts as happy in the problem, but that is not how to explain it."""
    pods = tuple(replace(pod, happy=False) if pod.uid == uid else pod for pod in problem.pods)
    return replace(problem, pods=pods)


def placement_in(plan: Plan, uid: str, plan_id: str, at: float) -> PlacementView | None:
    """Why a plan moves a pod; None if it does not move it."""
    for move in plan.moves:
        if move.uid == uid:
            here = (f"{move.source or 'pending'} -> {move.target}", *move.reasons)
            there = tuple(WhyNot(no.node, no.reason) for no in move.rejected)
            return PlacementView(plan_id, at, plan.planner, here, there)
    return None


def _evidence(pod: Pod, snapshot: Snapshot, found: ProbeEvidence | None, settings: Settings) -> Evidence | None:
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
        half_life=_half_life(pod, settings),
        sources=sources,
        last_failure=found.last_failure,
        messages=tuple(ProbeMessage(message.at, 1, message.text) for message in found.messages),
    )


def _half_life(pod: Pod, settings: Settings) -> float:
    """Of the probe that forgets first."""
    periods = [container.liveness.period for container in pod.containers if container.liveness is not None]
    return half_life(settings.happiness).of(min(periods, default=0.0))


def pod_resources(pod: Pod, snapshot: Snapshot) -> tuple[AxisView, ...]:
    usage, peak = snapshot.usage.usage(pod.uid), snapshot.usage.peak(pod.uid)
    node = snapshot.cluster.nodes.get(pod.node or "")
    allocatable = node.allocatable if node else {}
    axes = (("cpu", "cores", usage.cpu, peak.cpu), ("memory", "bytes", usage.memory, peak.memory))
    return tuple(
        AxisView(
            axis,
            unit,
            measured.fresh,
            pod.requests.get(axis, 0.0),
            estimate,
            allocatable.get(axis),
            _forecast(pod, Axis[axis.upper()], snapshot),
        )
        for axis, unit, measured, estimate in axes
    )


def _forecast(pod: Pod, axis: Axis, snapshot: Snapshot) -> ForecastView | None:
    forecasts = snapshot.forecasts.forecasts
    choice = peak_choice(pod, snapshot.forecasts.settings)
    found = forecasts.pods.of(pod.key, axis, choice.horizon)
    if found is None:
        return None
    growth = forecasts.growth.get(pod.key) if axis is Axis.MEMORY else None
    to_limit = None if growth is None else growth.seconds_to_limit
    return ForecastView(choice.horizon, found.value, found.peak, choice.coverage, found.trust, to_limit)


def _decision(pod: Pod, eligibility: Eligibility) -> CurrentDecision | None:
    """What is decided about this pod as the cluster is now."""
    snapshot = eligibility.snapshot
    happiness = snapshot.happiness.get(pod.uid)
    if happiness is None or not happiness.unhappy or not eligibility.management.covers(pod) or pod.node is None:
        return None
    found = decide_for(pod, eligibility)
    likely = None if found.evidence is None else found.evidence.probability
    shown = evidence_parts(found.evidence)
    if isinstance(found, Wait):
        return CurrentDecision(HistoryKind.WAIT, found.reason, found.text, snapshot.at, found.until, likely, shown)
    return CurrentDecision(HistoryKind.REMATCH, "unhappy", found.cause, snapshot.at, None, likely, shown)
