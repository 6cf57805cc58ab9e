"""Eligibility: may this pod be moved at all? The one list of checks that decision, planning, execution and pages use.

Each check has a single-pod form that gives the reason with its evidence. In a large cluster nearly every pod passes
all checks, and calling each check for each pod takes longer than the plan. So a check also has a bulk form: one
cheap pass that returns the positions of the pods that need the single-pod form.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from math import ceil, isfinite

import numpy as np

from matching.cached_property import cached_property
from matching.feasibility import removal_taint
from matching.plan import Promise
from matching.problem import Requirement
from matching.selectors import matches
from reactor.clock import rfc3339
from reactor.cluster.pod_constraints import bound_pvs, unsupported_constraints
from reactor.cluster.records import Pod
from reactor.decision.brakes import CLUSTER
from reactor.decision.causes import node_use
from reactor.decision.cooldowns import Cooldowns
from reactor.decision.limits import Exceeded
from reactor.decision.strategies import KeptChoices, Strategies
from reactor.decision.wait_reasons import Reason
from reactor.settings.duration import parse_duration
from reactor.settings.model import Mode, Settings
from reactor.settings.planner import waived_by
from reactor.settings.selector import parse_selector
from reactor.settings.windows import Window, annotated_closed_until, closed_until
from reactor.state.snapshot import Needs, Snapshot

NOT_MANAGED = "not managed"
DO_NOT_MOVE = "rematch.io/do-not-move"
WINDOW = "rematch.io/window"
MOST_COMPARED = 200
"""Pods elsewhere that an unhappy pod is compared with."""
_SAFE_TO_EVICT = "cluster-autoscaler.kubernetes.io/safe-to-evict"
_DO_NOT_DISRUPT = "karpenter.sh/do-not-disrupt"
_EVICTION_IN_PROGRESS = "descheduler.alpha.kubernetes.io/eviction-in-progress"
_DESCHEDULER_ANNOTATION = "descheduler.alpha.kubernetes.io/prefer-no-eviction"
_PROTECTING = frozenset({DO_NOT_MOVE, _SAFE_TO_EVICT, _DO_NOT_DISRUPT, _EVICTION_IN_PROGRESS, _DESCHEDULER_ANNOTATION})
_SYSTEM_PRIORITY_CLASSES = ("system-cluster-critical", "system-node-critical")
_SYSTEM_PRIORITY = 2_000_000_000


class Veto(StrEnum):
    """Why a pod is never moved, whatever its happiness."""

    TERMINATING = "terminating"
    FINISHED = "finished"
    MIRROR = "mirrorPod"
    KUBE_SYSTEM = "kubeSystem"
    SYSTEM_CRITICAL = "systemCritical"
    NO_CONTROLLER = "noController"
    CONTROLLER_GONE = "controllerGone"
    DAEMON_SET = "daemonSet"
    JOB = "job"
    ANNOTATION = "annotation"
    LOCAL_DATA = "localData"
    POD_GROUP = "podGroup"
    EVICTION_IN_PROGRESS = "evictionInProgress"
    NODE_REMOVED = "nodeIsRemoved"


@dataclass(frozen=True, slots=True)
class Ineligible:
    """Why a pod may not be moved. As text: the code, the veto if there is one, and the evidence."""

    code: Reason | str
    evidence: str
    until: float | None = None
    """When the reason ends by itself; None when only a change in the cluster can end it."""
    veto: Veto | None = None

    @property
    def text(self) -> str:
        return self.evidence if self.veto is None else f"{self.veto}: {self.evidence}"

    def __str__(self) -> str:
        return f"{self.code}: {self.text}"


@dataclass(frozen=True, slots=True)
class Management:
    """The parsed form of `managed` in the settings."""

    namespaces: frozenset[str]
    requirements: tuple[Requirement, ...]
    scheduler_name: str | None
    any_scheduler_namespaces: frozenset[str] = frozenset()

    @classmethod
    def of(cls, settings: Settings) -> Management:
        managed = settings.managed
        return cls(
            frozenset(managed.namespaces),
            parse_selector(managed.label_selector),
            managed.scheduler_name,
            frozenset(managed.any_scheduler_namespaces),
        )

    def why_not(self, pod: Pod) -> str:
        """Which part of `managed` excludes the pod; empty when it is managed."""
        if pod.namespace == "kube-system":
            return "kube-system is never managed"
        if self.namespaces and pod.namespace not in self.namespaces:
            return f"managed.namespaces does not name {pod.namespace}"
        if self.scheduler_name is not None and pod.scheduler_name != self.scheduler_name:
            return f"managed.schedulerName is {self.scheduler_name}, the pod's is {pod.scheduler_name}"
        if self.requirements and not matches(self.requirements, pod.labels):
            return "managed.labelSelector does not select it"
        return ""

    def takes_any_scheduler(self, namespace: str) -> bool:
        """Whether pods of other schedulers are moved there."""
        return not self.any_scheduler_namespaces.isdisjoint((namespace, "*"))

    def covers(self, pod: Pod) -> bool:
        return not self.why_not(pod)

    def excluded(self, pods: Sequence[Pod]) -> list[int]:
        """The positions of the pods that it does not cover, fast enough for very many."""
        if self.namespaces or self.requirements or self.scheduler_name is not None:
            return [at for at, pod in enumerate(pods) if not self.covers(pod)]
        return [at for at, pod in enumerate(pods) if pod.namespace == "kube-system"]


class KeptChecks:
    """What the checks of earlier cycles found, for pods that have not changed since."""

    def __init__(self) -> None:
        self.choices = KeptChoices()
        self._passed: dict[str, Pod] = {}
        """By UID the records that no check of `by_record` suspects."""
        self._passed_with: tuple[object, ...] = ()

    def suspects(self, pods: Sequence[Pod], context: Eligibility) -> set[int]:
        """The positions of the pods that a check of `by_record` suspects."""
        settings = (context.management, context.settings.scheduler_name)
        if settings != self._passed_with or len(self._passed) > 2 * len(pods):
            self._passed, self._passed_with = {}, settings
        passed = self._passed
        unknown = [at for at, pod in enumerate(pods) if passed.get(pod.uid) is not pod]
        asked = [pods[at] for at in unknown]
        found = {unknown[at] for check in CHECKS for at in check.by_record(asked, context)}
        passed.update((pods[at].uid, pods[at]) for at in unknown if at not in found)
        return found


@dataclass(frozen=True)
class Eligibility:
    """The checks on one snapshot. Made once per cycle."""

    snapshot: Snapshot
    cooldowns: Cooldowns
    settings: Settings
    kept: KeptChecks = field(default_factory=KeptChecks)

    @cached_property
    def management(self) -> Management:
        return Management.of(self.settings)

    @cached_property
    def strategies(self) -> Strategies:
        return Strategies(self.snapshot, self.settings.execution, self.kept.choices)

    @cached_property
    def restrained(self) -> bool:
        """Whether moves wait until they can help and until earlier moves have settled. A planner such as
        `stable-paper`, which follows a source without either, waives it."""
        return Promise.RESTRAINT not in waived_by(self.settings.planner.name)

    @cached_property
    def _exceeded(self) -> dict[tuple[str, str], Exceeded | None]:
        return {}

    def exceeded_limit(self, namespace: str, workload: str) -> Exceeded | None:
        """Worked out once per workload: very many pods are asked about."""
        asked = (namespace, workload)
        if asked not in self._exceeded:
            limits = self.settings.execution.limits
            self._exceeded[asked] = self.cooldowns.recent.exceeds(namespace, workload, self.snapshot.at, limits)
        return self._exceeded[asked]

    @cached_property
    def _loads(self) -> dict[str, float | None]:
        return {}

    def load_of(self, node: str) -> float | None:
        """The use of a node on its worst axis, if it is known. Worked out once: many replicas are asked about."""
        if node not in self._loads:
            known = self.snapshot.cluster.nodes.get(node)
            use = node_use(known, self.snapshot) if known is not None else None
            self._loads[node] = max(use.values()) if use is not None else None
        return self._loads[node]

    def is_crowded(self, node: str) -> bool:
        """Only where its use is known."""
        load = self.load_of(node)
        return load is not None and load >= self.settings.decision.node_pressure

    @cached_property
    def pods_with_room(self) -> tuple[Pod, ...]:
        """Pods on nodes that are not crowded; of very many a sample, since each unhappy pod is compared with them."""
        every = list(self.snapshot.cluster.pods.values())
        sample = every[:: max(1, ceil(len(every) / MOST_COMPARED))]
        return tuple(pod for pod in sample if pod.node is not None and not self.is_crowded(pod.node))

    @cached_property
    def windows(self) -> tuple[Window, ...]:
        return tuple(each.window for each in self.settings.execution.windows)

    def why_not(self, pod: Pod, checks: Iterable[Check] | None = None) -> Ineligible | None:
        """The first reason why this pod may not be moved, by all checks unless `checks` names some of them."""
        for check in CHECKS if checks is None else checks:
            found = check.reason(pod, self)
            if found is not None:
                return found
        return None

    def why_not_all(self, pods: Sequence[Pod]) -> list[Ineligible | None]:
        """`why_not` for very many pods at once. Where a limit is reached all are suspects, of one check."""
        suspects: dict[int, list[Check]] = {}
        for check in CHECKS:
            for position in check.by_cluster(pods, self):
                suspects.setdefault(position, []).append(check)
        found: list[Ineligible | None] = [None] * len(pods)
        for position, checks in suspects.items():
            found[position] = self.why_not(pods[position], checks)
        for position in self.kept.suspects(pods, self):
            found[position] = self.why_not(pods[position])
        return found


_Suspects = Callable[[Sequence[Pod], "Eligibility"], Iterable[int]]
"""The positions of the pods that may be ineligible."""


def _nobody(_pods: Sequence[Pod], _context: Eligibility) -> Iterable[int]:
    return ()


@dataclass(frozen=True, slots=True)
class Check:
    """The bulk form has two parts. A pod that is a suspect of neither certainly passes."""

    name: str
    reason: Callable[[Pod, Eligibility], Ineligible | None]
    by_record: _Suspects = _nobody
    """By the record of the pod and the settings alone: it is not asked again about a record that has passed."""
    by_cluster: _Suspects = _nobody
    """By everything else: asked in every cycle."""

    def suspects(self, pods: Sequence[Pod], context: Eligibility) -> set[int]:
        return {*self.by_record(pods, context), *self.by_cluster(pods, context)}


def _protected(veto: Veto, evidence: str) -> Ineligible:
    return Ineligible(Reason.PROTECTED, evidence, veto=veto)


def _not_managed(pod: Pod, context: Eligibility) -> Ineligible | None:
    excluded = context.management.why_not(pod)
    return Ineligible(NOT_MANAGED, excluded) if excluded else None


def _maybe_not_managed(pods: Sequence[Pod], context: Eligibility) -> Iterable[int]:
    return context.management.excluded(pods)


def _ended(pod: Pod, _: Eligibility) -> Ineligible | None:
    if pod.deleting is not None:
        return _protected(Veto.TERMINATING, "the pod is being deleted")
    if pod.finished:
        return _protected(Veto.FINISHED, f"its phase is {pod.phase}")
    return None


def _system(pod: Pod, _: Eligibility) -> Ineligible | None:
    if pod.mirror:
        return _protected(Veto.MIRROR, "a static pod belongs to its kubelet")
    if pod.namespace == "kube-system":
        return _protected(Veto.KUBE_SYSTEM, "kube-system is never touched")
    if pod.priority_class in _SYSTEM_PRIORITY_CLASSES or pod.priority >= _SYSTEM_PRIORITY:
        return _protected(Veto.SYSTEM_CRITICAL, f"its priority is {pod.priority_class or pod.priority}")
    return None


def _maybe_system(pods: Sequence[Pod], _: Eligibility) -> Iterable[int]:
    return [
        at
        for at, pod in enumerate(pods)
        if pod.namespace == "kube-system"
        or pod.mirror
        or pod.priority >= _SYSTEM_PRIORITY
        or pod.priority_class in _SYSTEM_PRIORITY_CLASSES
    ]


def _owner(pod: Pod, context: Eligibility) -> Ineligible | None:
    owner = pod.owner
    if owner is None:
        return _protected(Veto.NO_CONTROLLER, "nobody would create it again")
    if owner.kind == "DaemonSet":
        return _protected(Veto.DAEMON_SET, f"DaemonSet {owner.name} wants it on this node")
    if owner.kind == "Job":
        return _protected(Veto.JOB, f"Job {owner.name} would lose its work")
    if owner.kind == "Node":
        return _protected(Veto.MIRROR, "a static pod belongs to its kubelet")
    if owner.uid not in context.snapshot.cluster.workloads:
        text = f"its {owner.kind} {owner.name} is gone, or of a kind that is not watched"
        return _protected(Veto.CONTROLLER_GONE, text)
    return None


def _maybe_not_replaced(pods: Sequence[Pod], _: Eligibility) -> Iterable[int]:
    unmoved = ("DaemonSet", "Job", "Node")
    return [at for at, pod in enumerate(pods) if (owner := pod.owner) is None or owner.kind in unmoved]


def _maybe_without_owner(pods: Sequence[Pod], context: Eligibility) -> Iterable[int]:
    cluster = context.snapshot.cluster
    gone = cluster.pods_by_owner.keys() - cluster.workloads.keys()
    return _among({pod.uid for owner in gone for pod in cluster.pods_of(owner)}, pods)


def _annotated(pod: Pod, context: Eligibility) -> Ineligible | None:
    if _EVICTION_IN_PROGRESS in pod.annotations:
        return _protected(Veto.EVICTION_IN_PROGRESS, "its owner is moving it in the background already")
    if _DESCHEDULER_ANNOTATION in pod.annotations:
        return _protected(Veto.ANNOTATION, _DESCHEDULER_ANNOTATION)
    if pod.annotations.get(_SAFE_TO_EVICT, "").lower() == "false":
        return _protected(Veto.ANNOTATION, f"{_SAFE_TO_EVICT}: false")
    for key in (DO_NOT_MOVE, _DO_NOT_DISRUPT):
        value = pod.annotations.get(key)
        protected_until = float("-inf") if value is None else _protected_until(value, pod)
        if context.snapshot.at < protected_until:
            until = protected_until if isfinite(protected_until) else None
            return Ineligible(Reason.PROTECTED, f"{key}: {value}", until, Veto.ANNOTATION)
    return None


def _maybe_annotated(pods: Sequence[Pod], _: Eligibility) -> Iterable[int]:
    return [at for at, pod in enumerate(pods) if pod.annotations and not _PROTECTING.isdisjoint(pod.annotations)]


def _protected_until(value: str, pod: Pod) -> float:
    """`4h` protects for this long from the pod's creation on, `false` not at all, and everything else for ever: a
    value that we cannot read was meant to protect."""
    if value.lower() == "false":
        return float("-inf")
    try:
        duration = parse_duration(value)
    except ValueError:
        return float("inf")
    return pod.created + float(str(duration))


def _outside_window(pod: Pod, context: Eligibility) -> Ineligible | None:
    now = context.snapshot.at
    opens = closed_until(context.windows, now)
    if opens is not None:
        return Ineligible(Reason.WINDOW, f"execution.windows: the next one opens at {rfc3339(opens)}", opens)
    namespace = context.snapshot.cluster.namespaces.get(pod.namespace)
    for name, found in (("pod", pod.annotations), ("namespace", namespace.annotations if namespace else {})):
        text = found.get(WINDOW)
        if text is None:
            continue
        try:
            opens = annotated_closed_until(text, now)
        except ValueError as error:
            return Ineligible(Reason.WINDOW, f"annotation {WINDOW} of its {name}: {error}")
        if opens is not None:
            return Ineligible(Reason.WINDOW, f"the {name}'s {WINDOW} opens at {rfc3339(opens)}", opens)
    return None


def _maybe_outside_window(pods: Sequence[Pod], context: Eligibility) -> Iterable[int]:
    if closed_until(context.windows, context.snapshot.at) is not None:
        return range(len(pods))
    namespaces = {name for name, each in context.snapshot.cluster.namespaces.items() if WINDOW in each.annotations}
    return _in_namespaces(namespaces, pods)


def _maybe_own_window(pods: Sequence[Pod], _: Eligibility) -> Iterable[int]:
    return [at for at, pod in enumerate(pods) if WINDOW in pod.annotations]


def _braked(pod: Pod, context: Eligibility) -> Ineligible | None:
    brake = context.cooldowns.brakes.on(pod.namespace, context.snapshot.at)
    if brake is None:
        return None
    return Ineligible(Reason.BRAKED, str(brake), brake.until)


def _maybe_braked(pods: Sequence[Pod], context: Eligibility) -> Iterable[int]:
    scopes = {brake.scope for brake in context.cooldowns.brakes.held}
    if CLUSTER in scopes:
        return range(len(pods))
    return _in_namespaces(scopes, pods)


def _limited(pod: Pod, context: Eligibility) -> Ineligible | None:
    if not context.cooldowns.recent.started:
        return None
    exceeded = context.exceeded_limit(pod.namespace, context.snapshot.cluster.workload_name(pod))
    return None if exceeded is None else Ineligible(Reason.LIMIT, exceeded.text, exceeded.until)


def _maybe_limited(pods: Sequence[Pod], context: Eligibility) -> Iterable[int]:
    """All if the cluster's limit is reached, else those of the namespaces and workloads with many moves."""
    recent = context.cooldowns.recent
    if not recent.started:
        return ()
    if context.exceeded_limit("", "") is not None:
        return range(len(pods))
    often = recent.often_moved(context.settings.execution.limits)
    found = set(_in_namespaces(often.namespaces, pods))
    if often.workloads:
        named = context.snapshot.cluster.workload_name
        near = _in_namespaces(set(often.workloads.values()), pods)
        found.update(at for at in near if named(pods[at]) in often.workloads)
    return found


def _local_data(pod: Pod, context: Eligibility) -> Ineligible | None:
    if pod.ephemeral_pvcs:
        # With WaitForFirstConsumer such a claim stays unbound until a scheduler chooses a node for it. The binder does
        # not, so the replacement would wait for ever: the setting cannot lift this.
        names = ", ".join(pod.ephemeral_pvcs)
        return _protected(Veto.LOCAL_DATA, f"ephemeral volume {names}: the claim of a replacement could not be bound")
    if context.settings.execution.allow_local_data or not (pod.local_data or pod.pvcs):
        return None
    local = [f"local volume {pv.name}" for pv in bound_pvs(pod, context.snapshot.cluster) if pv.local]
    found = (*pod.local_data, *local)
    text = f"{', '.join(found)} (execution.allowLocalData lifts this)"
    return _protected(Veto.LOCAL_DATA, text) if found else None


def _grouped(pod: Pod, _: Eligibility) -> Ineligible | None:
    if not pod.group:
        return None
    return _protected(Veto.POD_GROUP, f"the pods of PodGroup {pod.group} work only together; none is moved alone")


def _on_removed_node(pod: Pod, context: Eligibility) -> Ineligible | None:
    node = context.snapshot.cluster.nodes.get(pod.node or "")
    taint = removal_taint(node.taints) if node is not None else ""
    return _protected(Veto.NODE_REMOVED, f"an autoscaler removes {pod.node} ({taint})") if taint else None


def _maybe_on_removed_node(pods: Sequence[Pod], context: Eligibility) -> Iterable[int]:
    nodes = context.snapshot.cluster.nodes.values()
    return _on_nodes({node.name for node in nodes if removal_taint(node.taints)}, pods)


def _other_scheduler(pod: Pod, context: Eligibility) -> Ineligible | None:
    """Pods of other schedulers are opted in by namespace, so that an upgrade never widens what is managed."""
    ours = context.settings.scheduler_name
    if pod.scheduler_name == ours:
        return None
    if not context.management.takes_any_scheduler(pod.namespace):
        text = (
            f"its schedulerName is {pod.scheduler_name}; only pods with {ours} are moved, and others where"
            " managed.anySchedulerNamespaces names their namespace"
        )
        return Ineligible(Reason.OTHER_SCHEDULER, text)
    problem = context.snapshot.steering.why_not(pod, context.settings)
    return Ineligible(Reason.NO_STEERING, problem) if problem else None


def _maybe_other_scheduler(pods: Sequence[Pod], context: Eligibility) -> Iterable[int]:
    ours = context.settings.scheduler_name
    return [at for at, pod in enumerate(pods) if pod.scheduler_name != ours]


def _unsupported(pod: Pod, context: Eligibility) -> Ineligible | None:
    found = unsupported_constraints(pod, context.snapshot.cluster)
    return Ineligible(Reason.UNSUPPORTED, f"unsupported {', '.join(found)}") if found else None


def _maybe_unsupported(pods: Sequence[Pod], _: Eligibility) -> Iterable[int]:
    return [at for at, pod in enumerate(pods) if pod.pvcs or pod.unsupported]


def _maybe_unread(pods: Sequence[Pod], context: Eligibility) -> Iterable[int]:
    return range(len(pods)) if context.snapshot.cluster.unread_namespaces else ()


def _no_strategy(pod: Pod, context: Eligibility) -> Ineligible | None:
    """Its owner, PDBs and the settings leave no way of moving it now."""
    choice = context.strategies.of(pod)
    return Ineligible(choice.code, choice.reason) if choice.strategy is None else None


def _maybe_no_strategy(pods: Sequence[Pod], context: Eligibility) -> Iterable[int]:
    return [at for at, choice in enumerate(context.strategies.of_all(pods)) if choice.strategy is None]


def _recently_moved(pod: Pod, context: Eligibility) -> Ineligible | None:
    lineage = context.cooldowns.lineage.get(pod.uid)
    if lineage is None or not context.restrained:
        return None
    now, until = context.snapshot.at, lineage.cools_until(context.settings.decision.cooldown)
    if now >= until:
        return None
    text = f"moved {now - lineage.moved:.0f} s ago (move {lineage.generation} in a row)"
    return Ineligible(Reason.COOLDOWN, text, until)


def _settling(pod: Pod, context: Eligibility) -> Ineligible | None:
    now = context.snapshot.at
    relieved = context.cooldowns.relieved.get(pod.node or "", float("-inf"))
    until = relieved + context.settings.decision.settle
    if now >= until or not context.restrained:
        return None
    text = f"a pod left {pod.node} {now - relieved:.0f} s ago; what that did is not measured yet"
    return Ineligible(Reason.SETTLING, text, until)


def _maybe_recently_moved(pods: Sequence[Pod], context: Eligibility) -> Iterable[int]:
    """Lineages are kept for longer than they cool down."""
    cooldown, now = context.settings.decision.cooldown, context.snapshot.at
    lineage = context.cooldowns.lineage
    return _among({uid for uid, each in lineage.items() if now < each.cools_until(cooldown)}, pods)


def _maybe_settling(pods: Sequence[Pod], context: Eligibility) -> Iterable[int]:
    settle, now = context.settings.decision.settle, context.snapshot.at
    return _on_nodes({node for node, at in context.cooldowns.relieved.items() if now < at + settle}, pods)


def _backed_off(pod: Pod, context: Eligibility) -> Ineligible | None:
    """What another mode did not carry out does not hold back mode act. Without restraint only a refusal by the API
    server counts."""
    backoff = context.cooldowns.backoffs.get(pod.uid)
    if backoff is None or context.snapshot.at >= backoff.until:
        return None
    if context.restrained:
        counts = backoff.reason is not Reason.OBSERVED or context.settings.mode is not Mode.ACT
    else:
        counts = backoff.reason in (Reason.PDB, Reason.EVICTION_FAILED)
    return Ineligible(backoff.reason, backoff.text, backoff.until) if counts else None


def _not_measured(pod: Pod, context: Eligibility) -> Ineligible | None:
    if context.snapshot.needs is not Needs.METRICS or context.snapshot.usage.knows(pod.uid):
        return None
    return Ineligible(Reason.NO_FRESH_METRICS, "what it needs is not known now")


def _maybe_not_measured(pods: Sequence[Pod], context: Eligibility) -> Iterable[int]:
    if context.snapshot.needs is not Needs.METRICS:
        return ()
    return np.flatnonzero(~context.snapshot.usage.knows_all([pod.uid for pod in pods])).tolist()


def _among(uids: Collection[str], pods: Sequence[Pod]) -> Iterable[int]:
    return [at for at, pod in enumerate(pods) if pod.uid in uids] if uids else ()


def _in_namespaces(namespaces: Collection[str], pods: Sequence[Pod]) -> Iterable[int]:
    return [at for at, pod in enumerate(pods) if pod.namespace in namespaces] if namespaces else ()


def _on_nodes(nodes: Collection[str], pods: Sequence[Pod]) -> Iterable[int]:
    return [at for at, pod in enumerate(pods) if pod.node in nodes] if nodes else ()


MANAGED = (Check("managed", _not_managed, by_record=_maybe_not_managed),)
PROTECTED = (
    Check(
        "ended",
        _ended,
        by_record=lambda pods, _: [
            at for at, pod in enumerate(pods) if pod.phase != "Running" or pod.deleting is not None
        ],
    ),
    Check("system", _system, by_record=_maybe_system),
    Check("owner", _owner, by_record=_maybe_not_replaced, by_cluster=_maybe_without_owner),
    Check("annotations", _annotated, by_record=_maybe_annotated),
    Check(
        "local data",
        _local_data,
        by_record=lambda pods, _: [at for at, pod in enumerate(pods) if pod.local_data or pod.pvcs],
    ),
    Check("group", _grouped, by_record=lambda pods, _: [at for at, pod in enumerate(pods) if pod.group]),
    Check("removed node", _on_removed_node, by_cluster=_maybe_on_removed_node),
)
STEERABLE = (
    Check("scheduler", _other_scheduler, by_record=_maybe_other_scheduler),
    Check("constraints", _unsupported, by_record=_maybe_unsupported, by_cluster=_maybe_unread),
)
MOVABLE_NOW = (Check("strategy", _no_strategy, by_cluster=_maybe_no_strategy),)
COOLED_DOWN = (
    Check("cooldown", _recently_moved, by_cluster=_maybe_recently_moved),
    Check("settling", _settling, by_cluster=_maybe_settling),
    Check("backoff", _backed_off, by_cluster=lambda pods, context: _among(context.cooldowns.backoffs, pods)),
)
IN_WINDOW = (Check("window", _outside_window, by_record=_maybe_own_window, by_cluster=_maybe_outside_window),)
ALLOWED_NOW = (
    *IN_WINDOW,
    Check("brake", _braked, by_cluster=_maybe_braked),
    Check("limits", _limited, by_cluster=_maybe_limited),
)
FRESHLY_MEASURED = (Check("metrics", _not_measured, by_cluster=_maybe_not_measured),)
CHECKS = (*MANAGED, *PROTECTED, *STEERABLE, *ALLOWED_NOW, *MOVABLE_NOW, *COOLED_DOWN, *FRESHLY_MEASURED)
"""In the order in which reasons are reported."""
