"""The decision: for which unhappy pods a rematch starts, and why all others wait."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from reactor.cluster.records import Pod
from reactor.decision.causes import node_cause
from reactor.decision.corroboration import corroborated
from reactor.decision.eligibility import (
    ALLOWED_NOW,
    COOLED_DOWN,
    MOVABLE_NOW,
    PROTECTED,
    STEERABLE,
    Eligibility,
    Ineligible,
)
from reactor.decision.evidence import Evidence, RecentCounts, evidence_of, recent_counts
from reactor.decision.predicted import predicted_pods
from reactor.decision.wait_reasons import Reason
from reactor.settings.model import Settings
from reactor.state.happiness import PodHappiness
from reactor.state.snapshot import Needs, Snapshot

_UNCORROBORATED = (
    "only Events say that its probes fail, and anyone who may create Events can write them: no restart, no probe"
    " counter and no pressure on its node agrees; set policies.events=true in the chart, and only kubelets can write"
    " them, or metrics.prometheus.url, and probe counters are read"
)


_LIKELY = 0.5
"""From here on the node is the likelier cause, so the app is not blamed."""
RECOVERED = 3.0
"""So many probes in a row that passed, and the pod is left to recover: the kubelet kills after as many failures."""


class Trigger(StrEnum):
    UNHAPPY = "unhappy"
    INTERVAL = "interval"
    DEMAND = "demand"
    FINISH = "finish"
    """Carry on with the moves under way and decide nothing new."""


@dataclass(frozen=True, slots=True)
class Wait:
    uid: str
    pod: str
    reason: Reason
    text: str
    until: float | None = None
    """When to decide again without a signal; None when only a signal can change the decision."""
    evidence: Evidence | None = None
    """Where it came to that: how likely it is that the pod fails because of where it is."""


@dataclass(frozen=True, slots=True)
class Unhappy:
    """A pod that a rematch is started for, and why a move can help it."""

    uid: str
    pod: str
    happiness: PodHappiness
    cause: str
    evidence: Evidence | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    at: float
    trigger: Trigger
    unhappy: tuple[Unhappy, ...] = ()
    waits: tuple[Wait, ...] = ()
    only_in: str | None = None
    """The namespace whose pods alone may move, because only its annotations make its pods unhappy; None: any."""

    predicted: bool = False
    """The pods are still happy: their nodes are forecast to be full."""

    @property
    def rematch(self) -> bool:
        """An unhappy pod that a move can help starts a rematch; so do a user and the interval."""
        return bool(self.unhappy) or self.trigger in (Trigger.INTERVAL, Trigger.DEMAND)


def decide(eligibility: Eligibility, trigger: Trigger = Trigger.UNHAPPY) -> Decision:
    """Unmanaged and pending pods are left out."""
    snapshot = eligibility.snapshot
    if trigger is Trigger.FINISH:
        return Decision(snapshot.at, trigger)
    unhappy: list[Unhappy] = []
    waits: list[Wait] = []
    for pod in snapshot.unhappy_pods():
        if pod.node is None or not eligibility.management.covers(pod):
            continue
        found = decide_for(pod, eligibility)
        if isinstance(found, Wait):
            waits.append(found)
        else:
            unhappy.append(found)
    chosen, later, namespace = _one_purpose(unhappy, eligibility.settings)
    if not chosen and trigger is Trigger.UNHAPPY:
        predicted = tuple(Unhappy(pod.uid, pod.key, known, text) for pod, known, text in predicted_pods(eligibility))
        return Decision(snapshot.at, trigger, predicted, (*waits, *later), None, predicted=bool(predicted))
    return Decision(snapshot.at, trigger, chosen, (*waits, *later), namespace)


def _one_purpose(
    unhappy: list[Unhappy], settings: Settings
) -> tuple[tuple[Unhappy, ...], tuple[Wait, ...], str | None]:
    """A rematch is for the pods that are unhappy by the settings. Without any it is for those of one namespace that
    are unhappy by its annotations, so that no pod moves for an annotation in another namespace."""
    if settings.decision.cross_namespace_annotations:
        return tuple(unhappy), (), None
    by_settings = tuple(one for one in unhappy if not one.happiness.only_annotated)
    namespace = None if by_settings or not unhappy else _namespace(unhappy[0])
    chosen = by_settings if namespace is None else tuple(one for one in unhappy if _namespace(one) == namespace)
    text = "only an annotation makes it unhappy; a rematch for other pods comes first"
    later = tuple(Wait(one.uid, one.pod, Reason.OTHERS_FIRST, text) for one in unhappy if one not in chosen)
    return chosen, later, namespace


def _namespace(one: Unhappy) -> str:
    return one.pod.partition("/")[0]


def decide_for(pod: Pod, eligibility: Eligibility) -> Unhappy | Wait:
    """One unhappy pod: start a rematch for it, or wait for a reason."""
    snapshot, settings = eligibility.snapshot, eligibility.settings
    counts = recent_counts(pod, snapshot, eligibility.cooldowns.relieved.get(pod.node or "", float("-inf")))
    wait = (
        _ineligible(pod, eligibility.why_not(pod, (*PROTECTED, *STEERABLE, *ALLOWED_NOW, *MOVABLE_NOW)))
        or _recovering(pod, counts, eligibility)
        or _too_little_evidence(pod, counts, settings)
        or _ineligible(pod, eligibility.why_not(pod, COOLED_DOWN))
        or _moves_under_way(pod, snapshot)
    )
    if wait is not None:
        return wait
    cause = node_cause(pod, snapshot, settings)
    if not cause.known:
        return Wait(pod.uid, pod.key, Reason.NO_FRESH_METRICS, cause.text)
    if not corroborated(pod, cause, snapshot, settings):
        return Wait(pod.uid, pod.key, Reason.UNCORROBORATED, _UNCORROBORATED)
    evidence = evidence_of(pod, cause, counts, eligibility)
    if evidence.probability < settings.decision.placement_probability and eligibility.restrained:
        if snapshot.needs is Needs.REQUESTS:
            text = f"no usage was measured, and requests alone do not show whether its node is the cause: {cause.text}"
            return Wait(pod.uid, pod.key, Reason.NO_FRESH_METRICS, text, evidence=evidence)
        return _placement_is_not_the_cause(pod, evidence)
    text = f"{evidence.node}, {counts.failed:.0f} failed probes: {evidence}"
    if evidence.node_suspected:
        text = f"{evidence.node}, but other workloads fail there, too, and its replicas elsewhere do not: {evidence}"
    return Unhappy(pod.uid, pod.key, snapshot.happiness[pod.uid], text, evidence)


def _placement_is_not_the_cause(pod: Pod, evidence: Evidence) -> Wait:
    """Its own limit, the app itself, or not clear."""
    node = evidence.node
    if evidence.raise_limit:
        reason, text = Reason.OWN_LIMIT, f"it runs into its own CPU limit on every node: {evidence.raise_limit}"
    elif evidence.replicas_fail:
        reason, text = Reason.APP_FAILS, f"its replicas fail on other nodes, too; {node}"
    elif evidence.others_fail:
        reason, text = Reason.MOVE_CANNOT_HELP, f"{evidence.others_fail}, so all may need what is missing; {node}"
    elif evidence.load_speaks_against and evidence.probability < _LIKELY:
        reason, text = Reason.APP_FAILS, f"{node}, which makes no probe fail: the app itself is the likely cause"
    else:
        reason, text = Reason.MOVE_CANNOT_HELP, f"{node}, which may not be the cause"
    return Wait(pod.uid, pod.key, reason, f"{text}; only {evidence}", evidence=evidence)


def _ineligible(pod: Pod, found: Ineligible | None) -> Wait | None:
    return None if found is None else Wait(pod.uid, pod.key, Reason(found.code), found.text, found.until)


def _recovering(pod: Pod, counts: RecentCounts, eligibility: Eligibility) -> Wait | None:
    """Left to recover: nothing failed since the node was relieved, or the last probes passed."""
    if not eligibility.restrained:
        return None
    if counts.passed_in_a_row >= RECOVERED:
        text = "its last probes passed"
    elif counts.since and not counts.failed:
        text = f"no probe failed{_since(pod, counts)}"
    else:
        return None
    return Wait(pod.uid, pod.key, Reason.RECOVERING, text)


def _too_little_evidence(pod: Pod, counts: RecentCounts, settings: Settings) -> Wait | None:
    needed = settings.decision.minimum_failures
    if counts.failed >= needed:
        return None
    text = f"needs at least {needed:g} failed probes as evidence{_since(pod, counts)}; there are {counts.failed:.1f}"
    return Wait(pod.uid, pod.key, Reason.TOO_LITTLE_EVIDENCE, text)


def _since(pod: Pod, counts: RecentCounts) -> str:
    if not counts.since:
        return ""
    probed = [each for each in pod.containers if each.liveness is not None]
    starts = [each.started for each in probed if each.started is not None]
    if len(starts) < len(probed):  # one is down, and the time of its last start is not known any more
        return f" since its container last started or {pod.node} was relieved"
    started = max(starts, default=0.0)
    return " since its container started" if counts.since <= started else f" since {pod.node} was relieved"


def _moves_under_way(pod: Pod, snapshot: Snapshot) -> Wait | None:
    if snapshot.moves.under_way:
        return Wait(pod.uid, pod.key, Reason.MOVE_IN_FLIGHT, "the last plan is still being carried out")
    return None
