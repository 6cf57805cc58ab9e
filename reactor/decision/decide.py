"""The decision: who is unhappy enough and could be helped by a move; everybody else waits for a reason."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from matching.plan import Promise
from reactor.cluster.pod_constraints import unsupported_constraints
from reactor.cluster.records import Pod
from reactor.decision.causes import placement_cause
from reactor.decision.managed import Management
from reactor.decision.pdbs import why_not_evictable
from reactor.decision.protection import protection
from reactor.decision.reasons import Reason
from reactor.settings.model import Mode, Settings
from reactor.settings.planner import waived_by
from reactor.state.snapshot import PodHappiness, Snapshot


class Trigger(StrEnum):
    UNHAPPY = "unhappy"
    INTERVAL = "interval"
    DEMAND = "demand"
    FINISH = "finish"
    """Carry on with what is under way and decide nothing new."""


@dataclass(frozen=True, slots=True)
class Wait:
    uid: str
    pod: str
    reason: Reason
    text: str
    until: float | None = None
    """When it is worth looking again before the next signal; None when only a signal can change it."""


@dataclass(frozen=True, slots=True)
class Unhappy:
    """A pod that a rematch is started for, and why a move can help it."""

    uid: str
    pod: str
    mood: PodHappiness
    cause: str


@dataclass(frozen=True, slots=True)
class Decision:
    at: float
    trigger: Trigger
    unhappy: tuple[Unhappy, ...] = ()
    waits: tuple[Wait, ...] = ()

    @property
    def rematch(self) -> bool:
        """A pod that can be helped starts one; a person or the interval does so for whoever may move."""
        return bool(self.unhappy) or self.trigger in (Trigger.INTERVAL, Trigger.DEMAND)


def decide(snapshot: Snapshot, settings: Settings, trigger: Trigger = Trigger.UNHAPPY) -> Decision:
    if trigger is Trigger.FINISH:
        return Decision(snapshot.at, trigger)
    management = Management.of(settings)
    unhappy: list[Unhappy] = []
    waits: list[Wait] = []
    for pod in snapshot.unhappy_pods():
        if not management.covers(pod) or pod.node is None:
            continue
        judged = judge(pod, snapshot, settings)
        if isinstance(judged, Wait):
            waits.append(judged)
        else:
            unhappy.append(judged)
    return Decision(snapshot.at, trigger, tuple(unhappy), tuple(waits))


def judge(pod: Pod, snapshot: Snapshot, settings: Settings) -> Unhappy | Wait:
    """One unhappy pod: rematch for its sake, or wait for a reason."""
    mood = snapshot.happiness[pod.uid]
    wait = (
        may_not_move(pod, snapshot, settings)
        or _too_little(pod, mood, settings)
        or rests(pod, snapshot, settings)
        or _busy(pod, snapshot)
    )
    if wait is not None:
        return wait
    cause = placement_cause(pod, snapshot, settings)
    if not cause.known:
        return Wait(pod.uid, pod.key, Reason.NO_FRESH_METRICS, cause.text)
    if not cause.helps and restrained(settings):
        return Wait(pod.uid, pod.key, Reason.MOVE_CANNOT_HELP, cause.text)
    return Unhappy(pod.uid, pod.key, mood, cause.text)


def may_not_move(pod: Pod, snapshot: Snapshot, settings: Settings) -> Wait | None:
    """What no amount of evidence changes."""
    veto = protection(pod, snapshot.cluster, settings)
    if veto is not None:
        return Wait(pod.uid, pod.key, Reason.PROTECTED, f"{veto.veto}: {veto.evidence}")
    if pod.scheduler_name != settings.scheduler_name:
        text = f"its schedulerName is {pod.scheduler_name}; only pods with {settings.scheduler_name} are moved"
        return Wait(pod.uid, pod.key, Reason.OTHER_SCHEDULER, text)
    unsupported = unsupported_constraints(pod, snapshot.cluster)
    if unsupported:
        return Wait(pod.uid, pod.key, Reason.UNJUDGED, f"cannot judge {', '.join(unsupported)}")
    budget = why_not_evictable(pod, snapshot.cluster)
    if budget:
        return Wait(pod.uid, pod.key, Reason.PDB, budget)
    return None


def rests(pod: Pod, snapshot: Snapshot, settings: Settings) -> Wait | None:
    """A pod that was just moved, helped by another one's move, or tried in vain, is left alone for a while."""
    if not restrained(settings):
        return _refused(pod, snapshot)
    lineage = snapshot.ongoing.lineage.get(pod.uid)
    if lineage is not None:
        until = lineage.rests_until(settings.decision.cooldown)
        if snapshot.at < until:
            text = f"moved {snapshot.at - lineage.moved:.0f} s ago (move {lineage.generation} in a row)"
            return Wait(pod.uid, pod.key, Reason.COOLDOWN, text, until)
    relieved = snapshot.ongoing.relieved.get(pod.node or "")
    if relieved is not None and snapshot.at < relieved + settings.decision.settle:
        text = f"a pod left {pod.node} {snapshot.at - relieved:.0f} s ago; what that did is not measured yet"
        return Wait(pod.uid, pod.key, Reason.SETTLING, text, relieved + settings.decision.settle)
    rest = snapshot.ongoing.resting.get(pod.uid)
    only_observed = rest is not None and rest.reason is Reason.OBSERVED and settings.mode is Mode.ACT
    if rest is not None and snapshot.at < rest.until and not only_observed:
        return Wait(pod.uid, pod.key, rest.reason, rest.text, rest.until)
    return None


def restrained(settings: Settings) -> bool:
    """Whether moves are held back until they can help and until earlier ones have had time to; `stable-paper`, which
    follows a source without either, waives it."""
    return Promise.RESTRAINT not in waived_by(settings.planner.name)


def _refused(pod: Pod, snapshot: Snapshot) -> Wait | None:
    """Even without restraint: who the API server refused to evict is not asked for again at once."""
    rest = snapshot.ongoing.resting.get(pod.uid)
    if rest is None or snapshot.at >= rest.until or rest.reason not in (Reason.PDB, Reason.EVICTION_FAILED):
        return None
    return Wait(pod.uid, pod.key, rest.reason, rest.text, rest.until)


def _too_little(pod: Pod, mood: PodHappiness, settings: Settings) -> Wait | None:
    failures, needed = mood.counts.failures, settings.decision.minimum_failures
    if failures >= needed:
        return None
    text = f"fewer than {needed:g} failed probes ({failures:.2f} after decay) are no evidence yet"
    return Wait(pod.uid, pod.key, Reason.TOO_LITTLE_EVIDENCE, text)


def _busy(pod: Pod, snapshot: Snapshot) -> Wait | None:
    if snapshot.ongoing.halted:
        return Wait(pod.uid, pod.key, Reason.HALTED, snapshot.ongoing.halted)
    if snapshot.ongoing.runs:
        return Wait(pod.uid, pod.key, Reason.MOVE_IN_FLIGHT, "the last plan is still being carried out")
    return None
