"""The decision: for which unhappy pods a rematch starts, and why all others wait."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from reactor.cluster.records import Pod
from reactor.decision.causes import placement_cause
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
from reactor.decision.wait_reasons import Reason
from reactor.settings.model import Settings
from reactor.state.happiness import PodHappiness
from reactor.state.snapshot import Snapshot

_UNCORROBORATED = (
    "only Events say that its probes fail, and anyone who may create Events can write them: no restart, no probe"
    " counter and no pressure on its node agrees; with the chart's policy rematch-events only kubelets can write them"
)


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


@dataclass(frozen=True, slots=True)
class Unhappy:
    """A pod that a rematch is started for, and why a move can help it."""

    uid: str
    pod: str
    happiness: PodHappiness
    cause: str


@dataclass(frozen=True, slots=True)
class Decision:
    at: float
    trigger: Trigger
    unhappy: tuple[Unhappy, ...] = ()
    waits: tuple[Wait, ...] = ()
    only_in: str | None = None
    """The namespace whose pods alone may move, because only its annotations make its pods unhappy; None: any."""

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
    happiness = snapshot.happiness[pod.uid]
    wait = (
        _ineligible(pod, eligibility.why_not(pod, (*PROTECTED, *STEERABLE, *ALLOWED_NOW, *MOVABLE_NOW)))
        or _too_little_evidence(pod, happiness, settings)
        or _ineligible(pod, eligibility.why_not(pod, COOLED_DOWN))
        or _moves_under_way(pod, snapshot)
    )
    if wait is not None:
        return wait
    cause = placement_cause(pod, snapshot, settings)
    if not cause.known:
        return Wait(pod.uid, pod.key, Reason.NO_FRESH_METRICS, cause.text)
    if not corroborated(pod, cause, snapshot, settings):
        return Wait(pod.uid, pod.key, Reason.UNCORROBORATED, _UNCORROBORATED)
    if not cause.helps and eligibility.restrained:
        return Wait(pod.uid, pod.key, Reason.MOVE_CANNOT_HELP, cause.text)
    return Unhappy(pod.uid, pod.key, happiness, cause.text)


def _ineligible(pod: Pod, found: Ineligible | None) -> Wait | None:
    return None if found is None else Wait(pod.uid, pod.key, Reason(found.code), found.text, found.until)


def _too_little_evidence(pod: Pod, happiness: PodHappiness, settings: Settings) -> Wait | None:
    failures, needed = happiness.counts.failures, settings.decision.minimum_failures
    if failures >= needed:
        return None
    text = f"needs at least {needed:g} failed probes as evidence; after decay there are {failures:.2f}"
    return Wait(pod.uid, pod.key, Reason.TOO_LITTLE_EVIDENCE, text)


def _moves_under_way(pod: Pod, snapshot: Snapshot) -> Wait | None:
    if snapshot.moves.under_way:
        return Wait(pod.uid, pod.key, Reason.MOVE_IN_FLIGHT, "the last plan is still being carried out")
    return None
