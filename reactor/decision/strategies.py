"""How a pod would be moved, and why in this way: by a surge where its owner allows one, else by eviction.

A surge starts the replacement before the old pod ends. It needs an owner that may have one pod more for a while, and
somebody who may ask for it: only where nobody else sets the replicas they are written (scale surge), elsewhere the old
pod is released from its ReplicaSet (release surge). The latter, too, where the pod has to leave its Services first: a
ReplicaSet that is scaled down ends it while routes still lead to it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, cast

from matching.problem import Strategy
from reactor.cluster.kinds import Kind
from reactor.cluster.records import Pod, PodDisruptionBudget, Workload
from reactor.cluster.view import ClusterView
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


_UNKNOWN_OWNER = Choice(Strategy.EVICT, "eviction: its owner is not known")


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


class _OwnerChoices(NamedTuple):
    """What was found for the pods of an owner."""

    facts: _Owner
    like: dict[tuple[object, ...], tuple[Choice, Pod]]
    """By what of a pod matters, with the first pod like it: that keeps the objects whose identity is in the key."""


class KeptChoices:
    """The choices of earlier cycles. Those of an owner count until the owner, one of its pods, or what limits them has
    changed."""

    def __init__(self) -> None:
        self.owners: dict[str, _OwnerChoices] = {}
        """By UID."""
        self.by_pod: dict[str, Choice] = {}
        """By UID, with all strategies of the settings allowed. Of pods with a known owner."""
        self._view, self._settings = ClusterView(at=0.0), Execution()

    def bring_to(self, view: ClusterView, settings: Execution) -> None:
        """Forget what does not hold in this view."""
        earlier = self._view
        if view is earlier and settings is self._settings:
            return
        if settings != self._settings or view.unread != earlier.unread:
            self.owners, self.by_pod = {}, {}
        else:
            for uid in _changed_owners(earlier, view):
                self.owners.pop(uid, None)
                for pod in (*earlier.pods_of(uid), *view.pods_of(uid)):
                    self.by_pod.pop(pod.uid, None)
        self._view, self._settings = view, settings


def _changed_owners(earlier: ClusterView, view: ClusterView) -> set[str]:
    """UIDs of the owners for whose pods the choices may be other ones."""
    changed = _differing(earlier.workloads, view.workloads)
    if changed:
        changed |= {uid for uid, each in view.workloads.items() if each.owner is not None and each.owner.uid in changed}
    changed |= _differing(earlier.pods_by_owner, view.pods_by_owner)
    if earlier.pvcs is not view.pvcs:
        changed |= {uid for uid, pods in view.pods_by_owner.items() if any(pod.pvcs for pod in pods)}
    namespaces = _changed_namespaces(earlier, view)
    if namespaces:
        changed |= {uid for uid, each in view.workloads.items() if each.namespace in namespaces}
    return changed


def _changed_namespaces(earlier: ClusterView, view: ClusterView) -> set[str]:
    """Those with other PDBs, ResourceQuotas, Services or HorizontalPodAutoscalers."""
    found: set[str] = set()
    for before, now in (
        (earlier.pdbs, view.pdbs),
        (earlier.quotas, view.quotas),
        (earlier.services, view.services),
        (earlier.hpas, view.hpas),
    ):
        if before is not now:
            known, there = {each.uid: each for each in before}, {each.uid: each for each in now}
            found |= {each.namespace for each in before if there.get(each.uid) is not each}
            found |= {each.namespace for each in now if known.get(each.uid) is not each}
    return found


def _differing(earlier: Mapping[str, object], now: Mapping[str, object]) -> set[str]:
    """The keys whose values are not the same object."""
    if earlier is now:
        return set()
    found = {key for key, value in now.items() if earlier.get(key) is not value}
    return found | (earlier.keys() - now.keys())


class Strategies:
    """The choices on one snapshot. What pods have in common is worked out once: very many of them are asked about."""

    def __init__(self, snapshot: Snapshot, settings: Execution, kept: KeptChoices | None = None) -> None:
        """`kept`: the choices of earlier snapshots."""
        self._view = snapshot.cluster
        self._settings = settings
        self._allowed = tuple(Strategy(name.value) for name in settings.strategies)
        self._kept = KeptChoices() if kept is None else kept
        self._asked: tuple[Sequence[Pod], Sequence[Choice]] = ((), ())

    def of(self, pod: Pod, only: Strategy | None = None) -> Choice:
        """`only`: whether the pod can be moved now in this way, which a plan has named."""
        owner = self._view.workloads.get(pod.owner.uid) if pod.owner is not None else None
        if owner is None:
            return _UNKNOWN_OWNER
        known = self._known(owner)
        key = (
            pod.namespace,
            id(pod.labels),
            id(pod.replacement_requests),
            pod.ready,
            pod.pre_stop,
            pod.pvcs,
            BACKGROUND_ANNOTATION in pod.annotations,
            only,
        )
        found = known.like.get(key)
        if found is None:
            allowed = self._allowed if only is None else tuple(each for each in self._allowed if each is only)
            found = known.like[key] = (self._choose(pod, known.facts, allowed), pod)
        return found[0]

    def of_all(self, pods: Sequence[Pod]) -> Sequence[Choice]:
        """`of` for very many pods at once, all of this snapshot. The answer for the last sequence is kept."""
        if pods is not self._asked[0]:
            self._asked = (pods, self._all(pods))
        return self._asked[1]

    def _all(self, pods: Sequence[Pod]) -> Sequence[Choice]:
        self._kept.bring_to(self._view, self._settings)
        by_pod, workloads = self._kept.by_pod, self._view.workloads
        found = list(map(by_pod.get, [pod.uid for pod in pods]))
        for at, choice in enumerate(found):
            if choice is None:
                pod = pods[at]
                found[at] = chosen = self.of(pod)
                if pod.owner is not None and pod.owner.uid in workloads:
                    by_pod[pod.uid] = chosen
        return cast("list[Choice]", found)

    def _known(self, owner: Workload) -> _OwnerChoices:
        self._kept.bring_to(self._view, self._settings)
        known = self._kept.owners.get(owner.uid)
        if known is None:
            facts = self._facts(owner, self._top(owner), self._view.pods_of(owner.uid))
            known = self._kept.owners[owner.uid] = _OwnerChoices(facts, {})
        return known

    def _choose(self, pod: Pod, facts: _Owner, allowed: tuple[Strategy, ...]) -> Choice:
        if facts.wait:
            return Choice(None, facts.wait)
        pdbs = self._view.pdbs_of(pod)
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

    def _facts(self, owner: Workload, top: Workload, of_owner: tuple[Pod, ...]) -> _Owner:
        pods = [pod for pod in of_owner if pod.active]
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
