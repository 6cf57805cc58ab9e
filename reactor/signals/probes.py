"""Probe history: decayed counts of successful and failed liveness probes per pod UID, each failed probe counted once.

`container_probes` fuses the three sources; `kubelet_events` counts each occurrence of an Event once, also when it is
delivered, listed or created again. This module adds, per pod:

- Pods must be observed before their events. Events and counters of an unknown UID are ignored.
- `listed=True` marks events from a list. They are history and are dated by their timestamps. After a restart, the
  stored event counts and counter values show which of them were counted before.
- The kubelet sends 25 Warnings per pod, then one per 5 minutes. While this budget is spent, the absence of events
  proves nothing, so elapsed time does not count as successful probes.
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from dataclasses import dataclass

import msgspec
from msgspec import Struct

from reactor.cluster.decoding.events import concerns_probes
from reactor.cluster.records import Container, Event, Pod
from reactor.signals.container_probes import LOOK_BACK, ContainerProbes
from reactor.signals.kubelet_events import (
    CountedEvents,
    ProbeOutcome,
    container_of,
    is_combined,
    new_occurrences,
    probe_outcome,
    span_of,
)
from reactor.signals.measurements import ProbeCounter
from reactor.signals.probe_counts import HalfLife, ProbeCounts, RecentProbes, Span
from storage.rows import HappinessRow

_BURST = 25.0
_REFILL = 300.0
_MESSAGES_KEPT = 3


class FailureMessage(Struct, frozen=True, array_like=True, gc=False):
    at: float
    container: str
    text: str


class _PodProbes(Struct, array_like=True, gc=False):
    """What is stored for one pod besides its counts."""

    containers: tuple[ContainerProbes, ...] = ()
    counted: CountedEvents | None = None
    budget: float = _BURST
    budget_at: float = 0.0
    messages: tuple[FailureMessage, ...] = ()


class _Entry(Struct, gc=False):
    pod: str
    namespace: str
    created: float
    node: str
    probes: _PodProbes


@dataclass(frozen=True, slots=True)
class ProbeEvidence:
    """Where a pod's counts come from. The failures per source are not decayed; each counts for the first source."""

    counts: ProbeCounts
    failures_by_events: float
    failures_by_counters: float
    failures_by_kills: float
    counters_read_at: float | None
    last_failure: float | None
    events_silenced: bool
    """The kubelet's budget of Warnings for this pod is spent: without counters, no events does not mean success."""
    messages: tuple[FailureMessage, ...]


class ProbeHistory:
    """O(1) per signal. Time never goes back: a query for an earlier time is answered for the latest time seen."""

    def __init__(self, half_life: HalfLife) -> None:
        self.half_life = half_life
        self._entries: dict[str, _Entry] = {}
        self._uids: dict[str, dict[str, str]] = {}
        self._stored: dict[str, HappinessRow] = {}
        self._changed: set[str] = set()
        self._new_failures: dict[str, float] = {}
        self._minute_failures: dict[str, float] = {}

    def observe_pod(self, pod: Pod, now: float) -> None:
        """Pods without a liveness probe are not kept."""
        entry = self._entries.get(pod.uid)
        if entry is None:
            if all(container.liveness is None for container in pod.containers):
                return
            entry = self._admit(pod)
        entry.node = pod.node or ""
        probing = pod.phase == "Running" and pod.deleting is None
        for container in pod.containers:
            if container.liveness is not None:
                self._follow(entry, container, now, probing=probing and container.started is not None)

    def observe_event(self, event: Event, now: float, *, listed: bool) -> bool:
        """True when the event adds failures that were not known before."""
        entry = self._entries.get(event.involved_uid)
        if entry is None or not concerns_probes(event) or not _is_about(entry, event):
            return False
        outcome = probe_outcome(event)
        if outcome is ProbeOutcome.OTHER and event.type != "Warning":
            return False
        probes = entry.probes
        if probes.counted is None:
            probes.counted = {}
        count = new_occurrences(probes.counted, event)
        if not count:
            return False
        span = span_of(event, count, now, listed=listed)
        for container in probes.containers:
            container.advance(now, self._half_life(container))
        if event.type == "Warning":
            _spend(probes, count, span.last, now)
        known = _reported(entry)
        if outcome is ProbeOutcome.OTHER or not self._count(entry, event, outcome, count, span):
            return False
        self._changed.add(event.involved_uid)
        if not listed:
            self._note_failures(event.involved_uid, _reported(entry) - known)
        return True

    def observe_counters(self, counters: Iterable[ProbeCounter], now: float) -> set[str]:
        """The UIDs of the pods with failures that were not known before."""
        failed: set[str] = set()
        for counter in counters:
            uid = self._uids.get(counter.namespace, {}).get(counter.pod, "")
            entry = self._entries.get(uid) if counter.uid in (uid, "") else None
            if entry is None:
                continue
            known, first = _reported(entry), _unread(entry, counter.container)
            if self._read(entry, counter, now):
                failed.add(uid)
                if not first:
                    self._note_failures(uid, _reported(entry) - known)
        self._changed |= failed
        return failed

    def forget(self, uid: str) -> None:
        entry = self._entries.pop(uid, None)
        self._changed.discard(uid)
        self._new_failures.pop(uid, None)
        if entry is not None and self._uids[entry.namespace].get(entry.pod) == uid:
            del self._uids[entry.namespace][entry.pod]

    def advance(self, uids: Iterable[str], now: float) -> None:
        """Decay the counts of these pods to `now`."""
        for uid in uids:
            entry = self._entries.get(uid)
            for container in entry.probes.containers if entry is not None else ():
                container.advance(now, self._half_life(container))

    def counts(self, uid: str, now: float) -> ProbeCounts:
        entry = self._entries.get(uid)
        if entry is None:
            return ProbeCounts()
        successes = failures = counted = 0.0
        for container in map(copy, entry.probes.containers):
            container.advance(now, self._half_life(container))
            successes += container.total_successes
            failures += container.total_failures
            counted += container.counted
        return ProbeCounts(successes, failures, counted)

    def recent(self, uid: str, now: float) -> tuple[RecentProbes, ...]:
        """By container; empty for a pod without history."""
        entry = self._entries.get(uid)
        containers = [copy(container) for container in entry.probes.containers] if entry is not None else []
        for container in containers:
            container.advance(now, self._half_life(container))
        return tuple(container.recent_probes() for container in containers)

    def relieve(self, uid: str, now: float) -> None:
        """For a decision the probes of this pod count from now on only: its node was relieved."""
        entry = self._entries.get(uid)
        for container in entry.probes.containers if entry is not None else ():
            container.relieve(now)
            self._changed.add(uid)

    def evidence(self, uid: str, now: float) -> ProbeEvidence | None:
        """None for a pod without history: it is gone, or has no liveness probe."""
        entry = self._entries.get(uid)
        if entry is None:
            return None
        containers, probes = entry.probes.containers, entry.probes
        return ProbeEvidence(
            counts=self.counts(uid, now),
            failures_by_events=sum(container.by_events for container in containers),
            failures_by_counters=sum(container.by_counters for container in containers),
            failures_by_kills=sum(container.by_kills for container in containers),
            counters_read_at=max((container.read_at for container in containers), default=0.0) or None,
            last_failure=max((container.last_failure for container in containers), default=0.0) or None,
            events_silenced=_events_silenced(probes, now),
            messages=probes.messages,
        )

    def take_new_failures(self) -> dict[str, float]:
        """Failed probes by UID since the last call, not decayed, without those of events from a list and of a first
        counter value: these may be old."""
        taken, self._new_failures = self._new_failures, {}
        return taken

    def take_minute_failures(self) -> dict[str, float]:
        """The same for another reader."""
        taken, self._minute_failures = self._minute_failures, {}
        return taken

    def silenced(self, uid: str, now: float) -> bool:
        """Whether nothing is known of its probes now: its events are silenced, and no counter is read."""
        entry = self._entries.get(uid)
        if entry is None or not _events_silenced(entry.probes, now):
            return False
        return all(now - container.read_at > LOOK_BACK for container in entry.probes.containers)

    def restore(self, rows: Iterable[HappinessRow]) -> None:
        """Call before the first pod is observed. A row is used when its pod is observed."""
        self._stored.update((row.uid, row) for row in rows)

    def drop_unused_rows(self) -> None:
        """Call after the first list: the restored rows that are left belong to pods that are gone."""
        self._stored.clear()

    def export(self, now: float, *, changed_only: bool = True) -> list[HappinessRow]:
        """Rows to store: pods with new failures since the last call, or all of them."""
        uids = [uid for uid in self._changed if uid in self._entries] if changed_only else list(self._entries)
        self._changed.clear()
        return [self._row(uid, now) for uid in uids]

    def _half_life(self, container: ContainerProbes) -> float:
        return self.half_life.of(container.every)

    def _admit(self, pod: Pod) -> _Entry:
        row = self._stored.pop(pod.uid, None)
        probes = _decode(row.probe_history) if row is not None else None
        entry = _Entry(pod.name, pod.namespace, pod.created, pod.node or "", probes or _PodProbes())
        self._entries[pod.uid] = entry
        self._uids.setdefault(pod.namespace, {})[pod.name] = pod.uid
        return entry

    def _follow(self, entry: _Entry, container: Container, now: float, *, probing: bool) -> None:
        known = _container(entry, container.name)
        if known is None:
            known = ContainerProbes.first_seen(container, entry.created, now, probing=probing)
            entry.probes.containers = (*entry.probes.containers, known)
            known.advance(now, self._half_life(known))
        else:
            known.created = entry.created
            known.advance(now, self._half_life(known))
            known.follow(container, now, probing=probing)

    def _count(self, entry: _Entry, event: Event, outcome: ProbeOutcome, occurrences: int, span: Span) -> bool:
        container = _container(entry, container_of(event)) or entry.probes.containers[0]
        half_life = self._half_life(container)
        count = 1 if is_combined(event) else occurrences
        if outcome is ProbeOutcome.KILLED:
            return container.kill(count, span, half_life)
        _keep_message(entry.probes, FailureMessage(span.last, container.name, event.message))
        if outcome is ProbeOutcome.ERRORED:
            return container.error(count, span, half_life)
        return container.fail(count, span, event.last, half_life)

    def _read(self, entry: _Entry, counter: ProbeCounter, now: float) -> bool:
        container = _container(entry, counter.container)
        if container is None:
            return False
        container.advance(now, self._half_life(container))
        if container.counted_failures is None and not counter.uid and now - entry.created < LOOK_BACK:
            container.start_reading(counter)
            return False
        return container.read(counter, entry.created, self._half_life(container))

    def _note_failures(self, uid: str, count: float) -> None:
        for failures in (self._new_failures, self._minute_failures):
            failures[uid] = failures.get(uid, 0.0) + count

    def _row(self, uid: str, now: float) -> HappinessRow:
        entry, counts = self._entries[uid], self.counts(uid, now)
        text = msgspec.json.encode(entry.probes).decode()
        return HappinessRow(uid, entry.namespace, entry.pod, counts.successes, counts.failures, now, text)


def _reported(entry: _Entry) -> float:
    """All its failures, each counted once, not decayed."""
    return sum(each.by_events + each.by_counters + each.by_kills for each in entry.probes.containers)


def _unread(entry: _Entry, container: str) -> bool:
    found = _container(entry, container)
    return found is None or found.counted_failures is None


def _events_silenced(probes: _PodProbes, now: float) -> bool:
    return probes.budget + (now - probes.budget_at) / _REFILL < 1


def _is_about(entry: _Entry, event: Event) -> bool:
    """Whoever may write Events in a namespace may write any UID into them; only its own pods are its concern. The same
    holds for a kubelet and the pods of its node."""
    if event.host and entry.node and event.host != entry.node:
        return False
    return (event.namespace, event.involved_name) == (entry.namespace, entry.pod)


def _decode(text: str) -> _PodProbes | None:
    """None for a format of another version: then the listed events are history again."""
    try:
        return msgspec.json.decode(text, type=_PodProbes)
    except msgspec.MsgspecError:
        return None


def _container(entry: _Entry, name: str) -> ContainerProbes | None:
    for container in entry.probes.containers:
        if container.name == name:
            return container
    return None


def _keep_message(probes: _PodProbes, message: FailureMessage) -> None:
    others = tuple(old for old in probes.messages if old.text != message.text)
    probes.messages = (*others[1 - _MESSAGES_KEPT :], message)


def _spend(probes: _PodProbes, count: int, when: float, now: float) -> None:
    """Take `count` Warnings of the time `when` out of the kubelet's budget of events for this pod."""
    refilled = min(_BURST, probes.budget + (now - probes.budget_at) / _REFILL)
    cost = max(0.0, count - (now - when) / _REFILL)
    probes.budget = max(0.0, refilled - cost)
    probes.budget_at = now
    if probes.budget < 1:
        silent_until = now + (1 - probes.budget) * _REFILL
        for container in probes.containers:
            container.due = max(container.due, silent_until)
