"""A snapshot without a running controller, from files."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

from predictors.peaks import SigmaOrPercentile
from reactor.cluster.dump import Dump
from reactor.cluster.kinds import WORKLOAD_KINDS
from reactor.cluster.records import NodeUsageSample, Workload
from reactor.cluster.view import ClusterView
from reactor.settings.model import Settings
from reactor.signals.measurements import MetricsSource
from reactor.signals.probes import ProbeEvidence, ProbeHistory
from reactor.signals.usage import UsageHistory, UsageView
from reactor.state.happiness import PodHappiness, half_life
from reactor.state.moves import ActiveMoves
from reactor.state.snapshot import Needs, Snapshot
from reactor.state.steering import SteeringStatus

NO_EVENTS = (
    "the files have no Events: probes that failed before are not known, and those since the pods started are taken to"
    " have passed; add `kubectl get events -A -o json` (Events expire after an hour)"
)
_WORKLOADS = frozenset(kind.object_kind for kind in WORKLOAD_KINDS)


@dataclass(frozen=True, slots=True)
class DumpSnapshot:
    """A snapshot, and the evidence behind the happiness in it."""

    snapshot: Snapshot
    evidence: dict[str, ProbeEvidence]
    notes: tuple[str, ...] = ()
    """Assumptions that had to be made."""


def snapshot_from_dump(
    dump: Dump, settings: Settings, *, now: float | None = None, needs: Needs | None = None
) -> DumpSnapshot:
    """`now` defaults to the newest timestamp in the files. Without metrics needs are requests."""
    view, notes = _with_assumed_owners(dump.view)
    now = view.at if now is None else now
    probes = ProbeHistory(half_life(settings.happiness))
    for pod in view.pods.values():
        probes.observe_pod(pod, now)
    failing = {event.involved_uid for event in dump.events if probes.observe_event(event, now, listed=True)}
    happiness = {uid: _happiness(view, probes, uid, now, settings) for uid in failing if uid in view.pods}
    evidence = {uid: found for uid in view.pods if (found := probes.evidence(uid, now)) is not None}
    if needs is None:
        needs = Needs.METRICS if dump.pod_usage else Needs.REQUESTS
    usage = _usage(dump, view, settings, now)
    unsaid = "files do not say whether the policy rematch-hints works"
    steering = SteeringStatus(policy_works=True, problem=unsaid, extender_problem="")
    recent = {uid: probes.recent(uid, now) for uid, found in happiness.items() if found.unhappy}
    snapshot = Snapshot(now, view, usage, happiness, ActiveMoves(), needs, steering, recent_probes=recent)
    return DumpSnapshot(snapshot, evidence, notes if dump.lists_events else (*notes, NO_EVENTS))


def _with_assumed_owners(view: ClusterView) -> tuple[ClusterView, tuple[str, ...]]:
    """Files without any ReplicaSet, say, do not prove that they are gone: they may not have been listed. An assumed
    owner has as many replicas as there are, and the limits that Kubernetes has by default."""
    listed = {workload.kind for workload in view.workloads.values()}
    replicas = Counter(pod.owner.uid for pod in view.pods.values() if pod.owner is not None and pod.active)
    assumed = {
        owner.uid: Workload(owner.kind, owner.uid, pod.namespace, owner.name, "", replicas=replicas[owner.uid])
        for pod in view.pods.values()
        if (owner := pod.owner) is not None and owner.kind in _WORKLOADS and owner.kind not in listed
    }
    for each in (*view.workloads.values(), *assumed.values()):
        owner, running = each.owner, each.replicas > 0
        if running and owner is not None and owner.kind == "Deployment" and "Deployment" not in listed:
            assumed[owner.uid] = Workload(
                owner.kind, owner.uid, each.namespace, owner.name, "", replicas=each.replicas, max_surge=1
            )
    if not assumed:
        return view, ()
    kinds = ", ".join(sorted({workload.kind for workload in assumed.values()}))
    note = f"the files hold no {kinds}: the owners that pods name are taken to exist"
    return replace(view, workloads={**view.workloads, **assumed}), (note,)


def _usage(dump: Dump, view: ClusterView, settings: Settings, now: float) -> UsageView:
    """Samples count by their own timestamps."""
    usage = UsageHistory(settings.metrics.freshness, settings.metrics.peak_window, SigmaOrPercentile())
    for node in view.nodes.values():
        usage.observe_node(node.name, node.addresses)
    for pod in view.pods.values():
        usage.observe_pod(pod)
    usage.record_pods(dump.pod_usage, MetricsSource.METRICS_API, now)
    usage.record_nodes(_with_sums(dump, view), MetricsSource.METRICS_API, now)
    return usage.freeze(now)


def _happiness(view: ClusterView, probes: ProbeHistory, uid: str, now: float, settings: Settings) -> PodHappiness:
    pod = view.pods[uid]
    return PodHappiness.of(pod, view.namespaces.get(pod.namespace), probes.counts(uid, now), settings.happiness)


def _with_sums(dump: Dump, view: ClusterView) -> list[NodeUsageSample]:
    """A node without a sample uses at least what its pods use, when all of them have one."""
    sampled = {sample.node for sample in dump.node_usage}
    by_pod = {(sample.namespace, sample.pod): sample for sample in dump.pod_usage}
    sums = []
    for node in view.nodes.values():
        if node.name in sampled:
            continue
        pods = [pod for pod in view.pods_on(node.name) if not pod.finished]
        samples = [by_pod.get((pod.namespace, pod.name)) for pod in pods]
        known = [one for one in samples if one is not None and one.cpu is not None and one.memory is not None]
        if len(known) == len(pods) and (known or by_pod):
            cpu, memory = sum(one.cpu or 0.0 for one in known), sum(one.memory or 0.0 for one in known)
            at = min((one.at for one in known), default=view.at)
            sums.append(NodeUsageSample(node.name, cpu, memory, at))
    return [*dump.node_usage, *sums]
