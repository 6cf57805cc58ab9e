"""How a pod would be moved, and why in this way: by a surge where its owner allows one, else by eviction.

A surge starts the replacement before the old pod ends. It needs an owner that may have one pod more for a while, and
somebody who may ask for it: only where nobody else sets the replicas they are written (scale surge), elsewhere the old
pod is released from its ReplicaSet (release surge). The latter, too, where the pod has to leave its Services first: a
ReplicaSet that is scaled down ends it while routes still lead to it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from matching.problem import Strategy
from matching.selectors import matches
from reactor.cluster.kinds import Kind
from reactor.cluster.records import Pod, PodDisruptionBudget, Workload
from reactor.cluster.writes import BACKGROUND_ANNOTATION
from reactor.decision.wait_reasons import Reason
from reactor.settings.model import Execution
from reactor.state.snapshot import Snapshot

HASH_LABEL = "pod-template-hash"
"""Taken off a pod that its ReplicaSet lets go."""

_REPLICA_OWNERS = (
    "argocd",
    "kustomize-controller",
    "helm-controller",
    "flux",
    "keda",
    "fleet",
    "configsync",
    "config-sync",
    "kapp-controller",
    "crossplane",
)
"""Field managers, by the beginning of their names, that would put the replicas back. kube-controller-manager is not one
of them: it writes for an autoscaler, and those are read."""

_DRAINED_FIRST = "release surge: it has no preStop hook, so it is taken off its Services before it ends"
_NOT_BEFORE = "execution.strategies has no surge before it that is possible"


@dataclass(frozen=True, slots=True)
class Choice:
    """`strategy` None: not in any way now; then `code` says why in a word."""

    strategy: Strategy | None
    reason: str
    """One line."""
    code: Reason = Reason.OWNER_BUSY


class _Owner(NamedTuple):
    """What the pods of an owner have in common."""

    wait: str
    """Why no pod of it is moved now; empty when some may be."""
    ways: Mapping[Strategy, str]
    """The surges that are possible, each with its reason."""
    no_surge: str
    """Why none is; empty when one is."""
    desired: int
    ready: int
    least_ready: int


class Strategies:
    """The choices on one snapshot. What pods have in common is worked out once: very many of them are asked about."""

    def __init__(self, snapshot: Snapshot, settings: Execution) -> None:
        self._view = snapshot.cluster
        self._settings = settings
        self._allowed = tuple(Strategy(name.value) for name in settings.strategies)
        self._owners: dict[str, _Owner] = {}
        self._choices: dict[tuple[object, ...], Choice] = {}

    def of(self, pod: Pod, only: Strategy | None = None) -> Choice:
        """`only`: whether the pod can be moved now in this way, which a plan has named."""
        owner = self._view.workloads.get(pod.owner.uid) if pod.owner is not None else None
        if owner is None:
            return Choice(Strategy.EVICT, "eviction: its owner is not known")
        key = (
            owner.uid,
            id(pod.labels),
            id(pod.requests),
            pod.ready,
            pod.pre_stop,
            pod.pvcs,
            BACKGROUND_ANNOTATION in pod.annotations,
            only,
        )
        found = self._choices.get(key)
        if found is None:
            allowed = self._allowed if only is None else tuple(each for each in self._allowed if each is only)
            found = self._choices[key] = self._choose(pod, owner, allowed)
        return found

    def _choose(self, pod: Pod, owner: Workload, allowed: tuple[Strategy, ...]) -> Choice:
        facts = self._owners.get(owner.uid)
        if facts is None:
            facts = self._owners[owner.uid] = self._facts(owner)
        if facts.wait:
            return Choice(None, facts.wait)
        pdbs = self._pdbs(pod)
        never = next((pdb.name for pdb in pdbs if pdb.never), None)
        if never is not None:
            return Choice(None, f"disruption budget {never} allows no disruption, ever", Reason.PDB)
        no_surge = facts.no_surge or self._why_no_surge(pod)
        for strategy in allowed:
            if strategy is Strategy.EVICT:
                return self._evict(pod, facts, pdbs, no_surge or _NOT_BEFORE)
            if not no_surge and strategy in facts.ways:
                if strategy is Strategy.SCALE_SURGE and self._is_drained_first(pod, facts, allowed):
                    return Choice(Strategy.RELEASE_SURGE, _DRAINED_FIRST)
                return Choice(strategy, facts.ways[strategy])
        named = ", ".join(each.value for each in allowed) or "nothing that fits"
        possible = no_surge or "; ".join(facts.ways.values())
        return Choice(None, f"it cannot be moved by {named} ({possible})", Reason.NO_STRATEGY)

    def _is_drained_first(self, pod: Pod, owner: _Owner, allowed: tuple[Strategy, ...]) -> bool:
        possible = Strategy.RELEASE_SURGE in allowed and Strategy.RELEASE_SURGE in owner.ways
        return possible and not pod.pre_stop and self._view.is_served(pod)

    def _facts(self, owner: Workload) -> _Owner:
        top = self._top(owner)
        pods = [pod for pod in self._view.pods_of(owner.uid) if pod.active]
        ways = dict(self._ways(owner, top))
        desired = top.replicas
        return _Owner(
            wait=_why_wait(owner, top, len(pods)),
            ways=ways,
            no_surge="" if ways else _why_never_surged(owner, top) or self._why_not_written(top),
            desired=desired,
            ready=sum(pod.ready for pod in pods),
            least_ready=max(1, desired - max(1, top.max_unavailable)),
        )

    def _top(self, owner: Workload) -> Workload:
        """Its Deployment, where it is one of a Deployment's ReplicaSets."""
        found = self._view.workloads.get(owner.owner.uid) if owner.owner is not None else None
        return owner if found is None else found

    def _ways(self, owner: Workload, top: Workload) -> Iterator[tuple[Strategy, str]]:
        if _why_never_surged(owner, top):
            return
        name, other = _named(top), self._other_owner(top)
        if not other:
            yield Strategy.SCALE_SURGE, f"scale surge: nobody else sets the replicas of {name}"
        if top.kind == "Deployment":
            yield Strategy.RELEASE_SURGE, f"release surge: {other or f'the replicas of {name} are left alone'}"

    def _why_not_written(self, top: Workload) -> str:
        return f"{self._other_owner(top)}, and a ReplicaSet without Deployment cannot let one pod go"

    def _other_owner(self, top: Workload) -> str:
        """Who else sets the replicas; empty when nobody does."""
        name, hpa = _named(top), self._view.hpa_of(top)
        if hpa is not None:
            return f"HorizontalPodAutoscaler {hpa.name} sets the replicas of {name}"
        if Kind.HPAS in self._view.unread:
            return f"horizontalpodautoscalers may not be read, so one may set the replicas of {name}"
        if top.gitops:
            return f"{name} is kept by GitOps ({top.gitops})"
        manager = next((each for each in top.replicas_managers if each.startswith(_REPLICA_OWNERS)), "")
        if manager:
            return f"{manager} sets the replicas of {name}"
        if top.owner is not None:
            return f"{name} belongs to {top.owner.kind} {top.owner.name}"
        return ""

    def _why_no_surge(self, pod: Pod) -> str:
        if BACKGROUND_ANNOTATION in pod.annotations:
            return "its owner moves it in the background when asked by an eviction"
        for name in pod.pvcs:
            pvc = self._view.pvc_named(pod.namespace, name)
            if pvc is None or not pvc.many_nodes:
                return f"claim {name} is for one node at a time"
        return self._spent_quota(pod)

    def _spent_quota(self, pod: Pod) -> str:
        """A surge needs a quota that has room for one pod more."""
        for quota in self._view.quotas_in(pod.namespace):
            for name, left in quota.left.items():
                if left < _taken(name, pod):
                    return f"ResourceQuota {quota.name} has {max(left, 0.0):g} of {name} left"
        return ""

    def _pdbs(self, pod: Pod) -> list[PodDisruptionBudget]:
        return [
            pdb
            for pdb in self._view.pdbs_in(pod.namespace)
            if pdb.selector is not None and matches(pdb.selector.requirements, pod.labels)
        ]

    def _evict(self, pod: Pod, owner: _Owner, pdbs: list[PodDisruptionBudget], why: str) -> Choice:
        refused = _refused_by_pdb(pod, pdbs)
        if refused:
            return Choice(None, refused, Reason.PDB)
        if owner.desired <= 1 and not self._settings.evict_single_replicas:
            text = f"it is the only replica, and execution.evictSingleReplicas is off; no surge: {why}"
            return Choice(None, text, Reason.LAST_REPLICA)
        others = owner.ready - pod.ready
        if owner.desired > 1 and pod.ready and others < owner.least_ready:
            text = f"{others} other replicas are Ready, and {owner.least_ready} have to be; no surge: {why}"
            return Choice(None, text, Reason.LAST_REPLICA)
        return Choice(Strategy.EVICT, f"eviction: {why}")


def _named(workload: Workload) -> str:
    return f"{workload.kind} {workload.name}"


def _why_wait(owner: Workload, top: Workload, pods: int) -> str:
    """Somebody else is changing the owner. A file may have no status, and then only the pods tell."""
    name = _named(top)
    if top.paused:
        return f"{name} is paused"
    if top.current_revision != top.update_revision:
        return f"{name} is between two revisions: an eviction would deploy the other one"
    if top.observed_generation < top.generation or owner.observed_generation < owner.generation:
        return f"the newest change of {name} is not carried out yet"
    rolling = top.existing and (top.updated < top.replicas or top.existing > top.updated)
    if top.kind == "Deployment" and (rolling or owner.replicas != top.replicas):
        return f"a rollout of {name} is in progress"
    if pods != owner.replicas:
        return f"{_named(owner)} has {pods} pods and wants {owner.replicas}"
    return ""


def _why_never_surged(owner: Workload, top: Workload) -> str:
    """By its kind and its update strategy; empty when a surge is possible in principle."""
    if owner.kind != "ReplicaSet":
        return f"{_named(owner)} cannot have one pod more for a while"
    if top is owner and owner.owner is not None:
        return f"{owner.owner.kind} {owner.owner.name}, which its ReplicaSet belongs to, is not known"
    if top.update_strategy == "Recreate":
        return f"{_named(top)} has the strategy Recreate: never two pods at once"
    if top.kind == "Deployment" and top.max_surge < 1:
        return f"{_named(top)} has maxSurge 0"
    return ""


def _refused_by_pdb(pod: Pod, pdbs: list[PodDisruptionBudget]) -> str:
    """What the eviction API would answer; empty when it would not refuse."""
    if len(pdbs) > 1:
        names = ", ".join(sorted(pdb.name for pdb in pdbs))
        return f"several disruption budgets select it ({names}); the eviction API refuses such pods"
    for pdb in pdbs:
        met = pdb.current_healthy >= pdb.desired_healthy > 0
        if pdb.disruptions_allowed < 1 and (pod.ready or not (met or pdb.always_allows_unhealthy)):
            return f"disruption budget {pdb.name} allows no disruption now"
    return ""


def _taken(name: str, pod: Pod) -> float:
    """What one pod more takes of a quota, by its name there. What it takes of limits is not known: something."""
    if name in ("pods", "count/pods"):
        return 1.0
    if name.startswith("limits."):
        return 1e-9
    return pod.replacement_requests.get(name.removeprefix("requests."), 0.0)
