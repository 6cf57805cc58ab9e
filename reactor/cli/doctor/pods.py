"""Which pods Rematch could move, and why not the others."""

from __future__ import annotations

from collections import Counter

from predictors.peaks import SigmaOrPercentile
from reactor.cli.doctor.cluster import Examined, listed
from reactor.cli.doctor.findings import Finding, State
from reactor.cluster.records import Pod
from reactor.decision.cooldowns import Cooldowns
from reactor.decision.eligibility import Eligibility, Ineligible
from reactor.signals.usage import UsageHistory
from reactor.state.moves import ActiveMoves
from reactor.state.snapshot import Needs, Snapshot


async def check_opted_in(examined: Examined) -> list[Finding]:
    settings, managed = examined.settings, examined.settings.managed
    ours = sum(pod.scheduler_name == settings.scheduler_name for pod in examined.view.pods.values())
    anyone = listed(sorted(managed.any_scheduler_namespaces)) or "no namespace"
    text = f"pods of any scheduler: {anyone}; elsewhere {ours} pods with schedulerName {settings.scheduler_name}"
    if managed.any_scheduler_namespaces or ours:
        return [Finding("opted in", State.OK, text)]
    mend = examined.installation.mend("'settings.managed.anySchedulerNamespaces={NAMESPACE}'")
    return [Finding("opted in", State.WARNING, f"{text}: nothing will ever be moved", mend)]


async def check_pdbs(examined: Examined) -> list[Finding]:
    pdbs = [pdb for pdb in examined.view.pdbs if pdb.expected_pods]
    never = sorted(f"{pdb.namespace}/{pdb.name}" for pdb in pdbs if pdb.never)
    spent = sum(not pdb.never and pdb.disruptions_allowed < 1 for pdb in pdbs)
    text = f"{len(pdbs)} select pods, {spent} of them allow no disruption now"
    if never:
        return [Finding("PDBs", State.WARNING, f"{text}; these never do, so their pods stay: {listed(never)}")]
    return [Finding("PDBs", State.OK, text)]


async def check_zero_downtime(examined: Examined) -> list[Finding]:
    """What a workload needs so that neither a rollout nor a move loses requests: readiness probe, preStop hook, PDB. A
    Job and a DaemonSet are not meant: nobody moves them."""
    view = examined.view
    pods = [pod for pod in view.pods.values() if pod.active and pod.namespace != "kube-system" and _serves(pod)]
    lacking: dict[str, set[str]] = {"readiness probe": set(), "preStop hook": set(), "PDB": set()}
    for pod in pods:
        has = (pod.readiness_probe, pod.pre_stop, bool(view.pdbs_of(pod)))
        for workloads, there in zip(lacking.values(), has, strict=True):
            if not there:
                workloads.add(view.workload_name(pod))
    number = len({view.workload_name(pod) for pod in pods})
    found = [f"without {what}: {listed(sorted(names))}" for what, names in lacking.items() if names]
    if not found:
        return [Finding("no lost requests", State.OK, f"{number} workloads have readiness probe, preStop hook and PDB")]
    text = f"of {number} workloads " + "; ".join(found)
    return [Finding("no lost requests", State.WARNING, text, "add them to the manifests; docs/zero-loss.md says why")]


def _serves(pod: Pod) -> bool:
    return pod.owner is not None and pod.owner.kind in ("ReplicaSet", "StatefulSet")


async def check_movable(examined: Examined) -> list[Finding]:
    """Without measurements, which have a check of their own, and without what a running controller remembers."""
    settings, view = examined.settings, examined.view
    usage = UsageHistory(settings.metrics.freshness, settings.metrics.peak_window, SigmaOrPercentile())
    snapshot = Snapshot(view.at, view, usage.freeze(view.at), {}, ActiveMoves(), Needs.REQUESTS, examined.steering)
    pods = [pod for pod in view.pods.values() if pod.node and not pod.finished]
    reasons = Eligibility(snapshot, Cooldowns(), settings).why_not_all(pods)
    counts = Counter(_short(reason) for reason in reasons if reason is not None)
    movable = sum(reason is None for reason in reasons)
    why = listed([f"{number} {reason}" for reason, number in counts.most_common()], 8)
    text = f"{movable} of {len(pods)} running pods" + (f"; the others: {why}" if why else "")
    return [Finding("movable", State.OK if movable else State.WARNING, text)]


def _short(reason: Ineligible) -> str:
    return str(reason.veto or reason.code)
