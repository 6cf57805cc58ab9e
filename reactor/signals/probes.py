"""The probes of liveness evidence: decayed successes and failures per pod UID, each failed probe counted once.

How the three sources are fused is told in `container`; how an Event is counted once over redelivery, relist and
re-creation in `kubelet_events`. What is added here, per pod:

- Observe pods before their events: events and counters of a UID that was not observed are passed over.
- `listed=True` marks what a list brought: history, dated by its timestamps. After a restart the stored marks of
  events and readings of counters tell what of it is in already.
- The kubelet lets 25 Warnings of a pod through, then one per 5 minutes. While that budget is spent, silence says
  nothing, so the time that passes is not taken for successful probes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import msgspec
from msgspec import Struct

from reactor.cluster.records import Container, Event, Pod
from reactor.signals.container_probes import LOOK_BACK, ContainerProbes
from reactor.signals.kubelet_events import (
    Marks,
    ProbeNews,
    container_of,
    fresh_occurrences,
    is_combined,
    probe_news,
    span_of,
)
from reactor.signals.measurements import ProbeCounter
from reactor.signals.probe_counts import Counts, Span
from storage.rows import HappinessRow

_BURST = 25.0
_REFILL = 300.0
_MESSAGES_KEPT = 3
_REPORTERS = ("kubelet", "")


class FailureMessage(Struct, frozen=True, array_like=True, gc=False):
    at: float
    container: str
    text: str


class _PodProbes(Struct, array_like=True, gc=False):
    """What is stored of one pod besides its counts."""

    containers: tuple[ContainerProbes, ...] = ()
    marks: Marks | None = None
    budget: float = _BURST
    budget_at: float = 0.0
    messages: tuple[FailureMessage, ...] = ()


class _Entry(Struct, gc=False):
    pod: str
    namespace: str
    created: float
    probes: _PodProbes


@dataclass(frozen=True, slots=True)
class ProbeEvidence:
    """What a pod's counts came from. The failures per source are plain numbers, each told first by that source."""

    counts: Counts
    failures_by_events: float
    failures_by_counters: float
    failures_by_kills: float
    counters_read_at: float | None
    last_failure: float | None
    events_silenced: bool
    """The kubelet's budget of Warnings for this pod is spent: without counters, silence is not success."""
    messages: tuple[FailureMessage, ...]


class ProbeHistory:
    """O(1) per signal. Time only moves on: asking for an earlier time answers for the latest one seen."""

    def __init__(self, half_life: float) -> None:
        self.half_life = half_life
        self._entries: dict[str, _Entry] = {}
        self._uids: dict[str, dict[str, str]] = {}
        self._stored: dict[str, HappinessRow] = {}
        self._changed: set[str] = set()

    def observe_pod(self, pod: Pod, now: float) -> None:
        """Pods without a liveness probe leave no trace."""
        entry = self._entries.get(pod.uid)
        if entry is None:
            if all(container.liveness is None for container in pod.containers):
                return
            entry = self._admit(pod)
        probing = pod.phase == "Running" and pod.deleting is None
        for container in pod.containers:
            if container.liveness is not None:
                self._follow(entry, container, now, probing=probing and container.started is not None)

    def observe_event(self, event: Event, now: float, *, listed: bool) -> bool:
        """True when the pod has failures that were not known before."""
        entry = self._entries.get(event.involved_uid)
        if entry is None or event.component not in _REPORTERS:
            return False
        told = probe_news(event)
        if told is ProbeNews.OTHER and event.type != "Warning":
            return False
        probes = entry.probes
        if probes.marks is None:
            probes.marks = {}
        fresh = fresh_occurrences(probes.marks, event)
        if not fresh:
            return False
        span = span_of(event, fresh, now, listed=listed)
        for container in probes.containers:
            container.advance(now, self.half_life)
        if event.type == "Warning":
            _spend(probes, fresh, span.last, now)
        if told is ProbeNews.OTHER or not self._count(entry, event, told, fresh, span):
            return False
        self._changed.add(event.involved_uid)
        return True

    def observe_counters(self, counters: Iterable[ProbeCounter], now: float) -> set[str]:
        """The UIDs of the pods with failures that were not known before."""
        news: set[str] = set()
        for counter in counters:
            uid = counter.uid or self._uids.get(counter.namespace, {}).get(counter.pod, "")
            entry = self._entries.get(uid)
            if entry is not None and self._read(entry, counter, now):
                news.add(uid)
        self._changed |= news
        return news

    def forget(self, uid: str) -> None:
        entry = self._entries.pop(uid, None)
        self._changed.discard(uid)
        if entry is not None and self._uids[entry.namespace].get(entry.pod) == uid:
            del self._uids[entry.namespace][entry.pod]

    def counts(self, uid: str, now: float) -> Counts:
        entry = self._entries.get(uid)
        if entry is None:
            return Counts(at=now)
        successes = failures = 0.0
        for container in entry.probes.containers:
            container.advance(now, self.half_life)
            successes += container.total_successes
            failures += container.total_failures
        return Counts(successes, failures, now)

    def evidence(self, uid: str, now: float) -> ProbeEvidence | None:
        """None for a pod that is not followed: it is gone, or has no liveness probe."""
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
            events_silenced=probes.budget + (now - probes.budget_at) / _REFILL < 1,
            messages=probes.messages,
        )

    def restore(self, rows: Iterable[HappinessRow]) -> None:
        """Before the first pod is observed; a row waits until its pod is."""
        self._stored.update((row.uid, row) for row in rows)

    def forget_unclaimed(self) -> None:
        """After the first list: what is still stored belongs to pods that are gone."""
        self._stored.clear()

    def export(self, now: float, *, changed_only: bool = True) -> list[HappinessRow]:
        """Rows to store: pods with new failures since the last call, or all of them."""
        uids = [uid for uid in self._changed if uid in self._entries] if changed_only else list(self._entries)
        self._changed.clear()
        return [self._row(uid, now) for uid in uids]

    def _admit(self, pod: Pod) -> _Entry:
        row = self._stored.pop(pod.uid, None)
        probes = _decode(row.probes) if row is not None else None
        entry = _Entry(pod.name, pod.namespace, pod.created, probes or _PodProbes())
        self._entries[pod.uid] = entry
        self._uids.setdefault(pod.namespace, {})[pod.name] = pod.uid
        return entry

    def _follow(self, entry: _Entry, container: Container, now: float, *, probing: bool) -> None:
        container = _container(entry, container.name)
        if container is None:
            container = ContainerProbes.first_seen(container, now, probing=probing)
            entry.probes.containers = (*entry.probes.containers, container)
            container.advance(now, self.half_life)
        else:
            container.advance(now, self.half_life)
            container.follow(container, now, probing=probing)

    def _count(self, entry: _Entry, event: Event, told: ProbeNews, fresh: int, span: Span) -> bool:
        container = _container(entry, container_of(event)) or entry.probes.containers[0]
        count = 1 if is_combined(event) else fresh
        if told is ProbeNews.KILLED:
            return container.kill(count, span, self.half_life)
        _note(entry.probes, FailureMessage(span.last, container.name, event.message[:200]))
        weight = span.weight(count, container.at, self.half_life)
        if told is ProbeNews.ERRORED:
            container.error(count, weight)
            return True
        return container.fail(count, weight, event.last)

    def _read(self, entry: _Entry, counter: ProbeCounter, now: float) -> bool:
        container = _container(entry, counter.container)
        if container is None:
            return False
        container.advance(now, self.half_life)
        if container.counted_failures is None and not counter.uid and now - entry.created < LOOK_BACK:
            container.start_reading(counter)
            return False
        return container.read(counter, entry.created, self.half_life)

    def _row(self, uid: str, now: float) -> HappinessRow:
        entry, counts = self._entries[uid], self.counts(uid, now)
        text = msgspec.json.encode(entry.probes).decode()
        return HappinessRow(uid, entry.namespace, entry.pod, counts.successes, counts.failures, now, text)


def _decode(text: str) -> _PodProbes | None:
    """None for what another version wrote: then the listed events are history again."""
    try:
        return msgspec.json.decode(text, type=_PodProbes)
    except msgspec.MsgspecError:
        return None


def _container(entry: _Entry, name: str) -> ContainerProbes | None:
    for container in entry.probes.containers:
        if container.name == name:
            return container
    return None


def _note(probes: _PodProbes, message: FailureMessage) -> None:
    others = tuple(old for old in probes.messages if old.text != message.text)
    probes.messages = (*others[1 - _MESSAGES_KEPT :], message)


def _spend(probes: _PodProbes, count: int, when: float, now: float) -> None:
    """Take `count` Warnings of the time `when` out of the kubelet's budget; when it is empty, silence says nothing."""
    refilled = min(_BURST, probes.budget + (now - probes.budget_at) / _REFILL)
    cost = max(0.0, count - (now - when) / _REFILL)
    probes.budget = max(0.0, refilled - cost)
    probes.budget_at = now
    if probes.budget < 1:
        silent_until = now + (1 - probes.budget) * _REFILL
        for container in probes.containers:
            container.due = max(container.due, silent_until)
