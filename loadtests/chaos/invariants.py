"""What must hold whatever happened, judged by the writes that the API server accepted and what the pods were then."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from loadtests.chaos.audit import Write
from loadtests.chaos.controllers import Incarnation
from loadtests.chaos.history import PodHistory
from loadtests.chaos.journal_invariants import NOT_ANNOUNCED, TWICE, entries, moved_twice, uid_of, unannounced
from loadtests.chaos.requests import MOVING, Step
from loadtests.chaos.timing import STALE
from loadtests.chaos.workloads import OURS, Workload
from loadtests.chaos.world import Wish

_HASH = "pod-template-hash"


@dataclass(frozen=True, slots=True)
class Violation:
    invariant: str
    text: str
    at: float = 0.0


@dataclass(frozen=True, slots=True)
class Stretch:
    """A time after a fault in which binding takes longer, or in which none can be expected at all (`away`)."""

    began: float
    ended: float
    away: bool = True


@dataclass(frozen=True, slots=True)
class Evidence:
    """Everything that was seen in one round."""

    writes: Sequence[Write]
    earlier: Sequence[Write] = field(default=(), kw_only=True)
    """Since the round before: a move of them may be in flight when the round begins."""
    histories: Sequence[PodHistory]
    workloads: Mapping[str, Workload]
    wishes: Sequence[Wish]
    incarnations: Sequence[Incarnation] = ()
    disturbances: Sequence[Stretch] = ()
    """Faults that take leadership or the API server away: after each, binding may take its time once more."""
    began: float = 0.0
    ended: float = 0.0
    binding_seconds: float = 9.0
    _by_uid: dict[str, PodHistory] = field(default_factory=dict)

    def pod(self, uid: str) -> PodHistory | None:
        if not self._by_uid:
            self._by_uid.update({each.uid: each for each in self.histories})
        return self._by_uid.get(uid)

    @property
    def ours(self) -> list[Write]:
        return [write for write in self.writes if write.ours]

    def least_wanted(self, workload: str, at: float) -> int:
        """The smallest number that its user wanted within the last moments."""
        before = [wish.replicas for wish in self.wishes if wish.workload == workload and wish.at <= at - STALE]
        since = [wish.replicas for wish in self.wishes if wish.workload == workload and at - STALE < wish.at <= at]
        return min([*before[-1:], *since], default=1)


Check = Callable[[Evidence], Iterator[Violation]]


def check_all(evidence: Evidence) -> list[Violation]:
    return [violation for each in INVARIANTS.values() for violation in each.check(evidence)]


def _preconditions(evidence: Evidence) -> Iterator[Violation]:
    """Every write that moves a pod names the UID or version it is meant for, so it is harmless when late."""
    for write in evidence.ours:
        if write.step in MOVING and write.accepted and not _has_precondition(write):
            yield Violation("precondition", f"{write.verb} {write.resource} {write.name} has none", write.began)


def _has_precondition(write: Write) -> bool:
    if isinstance(write.request, list):  # a JSON patch: it tests before it changes
        return any(operation.get("op") == "test" for operation in write.request)
    if write.verb == "create" and write.step is not Step.EVICT:
        return True
    options = write.request.get("deleteOptions") or write.request
    stated = {**(write.request.get("metadata") or {}), **(options.get("preconditions") or {})}
    return bool(stated.get("uid") or stated.get("resourceVersion"))


def _forbidden(evidence: Evidence) -> Iterator[Violation]:
    for write in evidence.ours:
        if write.code == 403 and not _starting(write, evidence) and not _quota_refused(write):
            text = f"{write.verb} {write.resource} {write.name}: {write.response.get('message', '')}"
            yield Violation("rights", text, write.began)


def _starting(write: Write, evidence: Evidence) -> bool:
    """An API server that has just started refuses everybody until it has read the roles."""
    return any(each.away and each.began <= write.began <= each.ended + STALE for each in evidence.disturbances)


def _quota_refused(write: Write) -> bool:
    return "exceeded quota" in str(write.response.get("message", ""))


def _ends_by_itself(evidence: Evidence) -> Iterator[Violation]:
    for each in evidence.incarnations:
        if evidence.began <= each.until <= evidence.ended and not each.killed:
            yield Violation("controller ended", f"{each.controller} (pid {each.pid}) ended by itself", each.until)


def evictions(evidence: Evidence) -> list[tuple[Write, PodHistory]]:
    """Accepted evictions of ours with their pods, the first of each pod."""
    found: dict[str, tuple[Write, PodHistory]] = {}
    for write in evidence.ours:
        if write.step is Step.EVICT and write.accepted:
            pod = evidence.pod(uid_of(write))
            if pod is not None:
                found.setdefault(pod.uid, (write, pod))
    return list(found.values())


def _ready_replicas(evidence: Evidence) -> Iterator[Violation]:
    """An eviction leaves as many Ready pods as the workload promises."""
    evicted = {pod.uid: write.began for write, pod in evictions(evidence)}
    for write, pod in evictions(evidence):
        workload = evidence.workloads.get(pod.workload)
        if workload is None or not pod.ready_at(write.began):
            continue
        start = write.began - STALE
        others = [
            each
            for each in evidence.histories
            if each.workload == pod.workload
            and each.uid != pod.uid
            and evicted.get(each.uid, float("inf")) > write.began
            and each.ready_within(start, write.ended)
        ]
        promised = workload.promised(evidence.least_wanted(workload.name, write.began))
        if len(others) < promised:
            text = f"eviction of {pod.name} left {len(others)} of {promised} Ready pods of {workload.name}"
            yield Violation("ready replicas", text, write.began)


def _scale_downs(evidence: Evidence) -> Iterator[Violation]:
    """Taking a replica away leaves what the PDB and the workload promise: the ReplicaSet asks no PDB."""
    for write in evidence.ours:
        workload = evidence.workloads.get(write.name)
        if write.step is not Step.OWNER or not write.accepted or workload is None:
            continue
        replicas = (write.response.get("spec") or {}).get("replicas")
        if not isinstance(replicas, int):
            continue
        pods = [each for each in evidence.histories if each.workload == workload.name]
        alive = [each for each in pods if each.seen <= write.began and (each.ended or float("inf")) > write.began]
        ready = sum(each.ready_within(write.began - STALE, write.ended) for each in alive)
        removed = max(0, len(alive) - replicas)
        unready = sum(not each.ready_within(write.began - STALE, write.ended) for each in alive)
        left = ready - max(0, removed - unready)
        promised = workload.promised(evidence.least_wanted(workload.name, write.began))
        least = max(promised, min(workload.min_available or 0, replicas))
        if removed and left < min(least, ready):
            text = f"{write.verb} of {workload.name} to {replicas} left {left} of {least} Ready pods"
            yield Violation("PDB or ready replicas", text, write.began)


def _deletions(evidence: Evidence) -> Iterator[Violation]:
    """Only what its ReplicaSet has let go is deleted; everything else is evicted, so that PDBs are asked."""
    for write in evidence.ours:
        if write.step is Step.POD_DELETE and write.accepted:
            labels = (write.response.get("metadata") or {}).get("labels") or {}
            if _HASH in labels or not labels:
                yield Violation("evicted, not deleted", f"pod {write.name} was deleted", write.began)


def _unbound(evidence: Evidence) -> Iterator[Violation]:
    """Every pod of ours fits somewhere: it is bound within a lease and five seconds of the API being there."""
    for pod in evidence.histories:
        if pod.scheduler != OURS or (pod.bound or evidence.ended) < evidence.began:
            continue
        until = min(each for each in (pod.bound, pod.ended, evidence.ended) if each is not None)
        met = [each for each in evidence.disturbances if each.began < until and each.ended > pod.seen]
        gone = _merged(each for each in met if each.away)
        away = sum(min(each.ended, until) - max(each.began, pod.seen) for each in gone)
        waited = until - pod.seen - away
        if waited > evidence.binding_seconds * (1 + len(met)):
            yield Violation("unbound", f"{pod.name} was unbound for {waited:.1f} s ({len(met)} disturbances)", pod.seen)


def _merged(stretches: Iterable[Stretch]) -> list[Stretch]:
    merged: list[Stretch] = []
    for each in sorted(stretches, key=lambda stretch: stretch.began):
        if merged and each.began <= merged[-1].ended:
            merged[-1] = Stretch(merged[-1].began, max(merged[-1].ended, each.ended))
        else:
            merged.append(each)
    return merged


@dataclass(frozen=True, slots=True)
class Term:
    """From when on a process held the lease."""

    credential: str
    since: float


def terms(writes: Iterable[Write]) -> list[Term]:
    found: list[Term] = []
    holder = ""
    for write in sorted(writes, key=lambda each: each.ended):
        if write.step is not Step.LEASE or not write.accepted or not write.ours:
            continue
        now = str((write.response.get("spec") or {}).get("holderIdentity") or "")
        if now and now != holder:
            found.append(Term(write.credential, write.ended))
        holder = now
    return found


def _past_leaders(evidence: Evidence) -> Iterator[Violation]:
    """An accepted write of a past leader neither repeats nor undoes what its successor does. A patch of a pod or of the
    hints names the version it was meant for: one that arrives before its successor's is seen by that and changes
    nothing more."""
    ours = [write for write in evidence.ours if write.accepted]
    for term, after in pairwise([*terms(ours), Term("", float("inf"))]):
        late = [w for w in ours if w.step in MOVING and w.credential != term.credential]
        late = [w for w in late if term.since < w.began < after.since]
        for write in late:
            for other in ours:
                if other.credential == term.credential and other.began >= term.since and _collide(write, other):
                    text = f"{write.verb} {write.resource} {write.name} by a past leader beside its successor's"
                    yield Violation("past leader", text, write.began)
                    break


def _collide(late: Write, own: Write) -> bool:
    """The same step on the same object; two evictions of one pod are one."""
    if late.step is not own.step or late.key != own.key or late.step is Step.EVICT:
        return False
    return late.step not in (Step.POD, Step.HINT) or late.ended > own.began


def _announced(evidence: Evidence) -> Iterator[Violation]:
    for write in unannounced(evidence.writes, entries([*evidence.earlier, *evidence.writes])):
        yield Violation(NOT_ANNOUNCED, f"{write.verb} {write.resource} {write.name}", write.began)


def _moved_once(evidence: Evidence) -> Iterator[Violation]:
    for one, other in moved_twice(entries(evidence.writes)):
        yield Violation(TWICE, f"moves {one.id} and {other.id} of plan {one.plan}", other.began)


@dataclass(frozen=True, slots=True)
class Invariant:
    code: str
    """As in `Violation.invariant`."""
    check: Check


INVARIANTS: Mapping[str, Invariant] = {
    "every moving write names a UID or version, so it is harmless when late": Invariant("precondition", _preconditions),
    "no accepted write of a past leader repeats or undoes a step": Invariant("past leader", _past_leaders),
    "every move is in the journal before it changes anything": Invariant(NOT_ANNOUNCED, _announced),
    "no pod is moved twice for one decision": Invariant(TWICE, _moved_once),
    "an eviction leaves the promised Ready replicas": Invariant("ready replicas", _ready_replicas),
    "scaling back leaves what the PDB and the workload promise": Invariant("PDB or ready replicas", _scale_downs),
    "pods are evicted, so that PDBs are asked, not deleted": Invariant("evicted, not deleted", _deletions),
    "a pod of ours is bound within the lease and 5 s of the API being there": Invariant("unbound", _unbound),
    "a controller ends only when it is killed": Invariant("controller ended", _ends_by_itself),
    "nothing is tried that we have no right to": Invariant("rights", _forbidden),
}
