"""Liveness evidence of one container, fused from three sources so that each failed probe counts once.

F = settled + pending. Three sources report the same failures, each with gaps of its own:

- An Event arrives at once, but the kubelet drops most events of a long failure. It adds to *pending*.
- A counter is exact but late: D failures since the value before. They first settle what is pending (events that came
  earlier); the rest is new, and *unclaimed* by any event. Pending failures beyond D wait, because Prometheus
  lags; those that the counters have not shown after Prometheus' look-back stay counted (a restarted kubelet lost them).
- A kill proves failureThreshold failures: the container's known failures are raised to kills x threshold.
  The difference is pending and unclaimed.

An Event that may be older than the last counter value or kill (received within GRACE of it, or dated before it) claims
unclaimed failures instead of adding to them. So over any interval F is the largest number that one source reported,
not the sum, and never more than what happened as long as events arrive within GRACE or the node's clock is not ahead.

Anyone who may create Events can write any count into one. A probe fails once per period at most, so Events and kills
add no more failures, and no more of their weight, than probes can have failed since the pod was created.

S is exact from counters. Since the last counter value it is elapsed time / period less the pending failures.
"""

from __future__ import annotations

from msgspec import Struct

from reactor.cluster.records import Container
from reactor.signals.measurements import ProbeCounter
from reactor.signals.probe_counts import FailedProbes, RecentProbes, Span, decay, spread

GRACE = 10.0
"""Seconds that an Event may take from the probe to the controller."""
LOOK_BACK = 300.0
"""Age in seconds up to which Prometheus still returns a value."""
_RECENT = 8
"""Groups of recent failures that are kept apart; older ones are joined."""
_SHORT_RECORD = 1000.0
"""Probes that are taken to have passed before: a few failures make no record."""
_SAME_TROUBLE = 600.0
"""Seconds without a failure after which trouble is over. The kubelet waits at most 300 s before it starts a container
again."""
_ENDING = 60.0
"""Seconds that a killed container may take to end. The kubelet does not probe it meanwhile."""
_EVENTS_KEPT = 3600.0
"""The API server's default lifetime of events: older ones cannot come again."""


class ContainerProbes(Struct, array_like=True, gc=False):
    """Weights are decayed to the time `at`; `pending`, `unclaimed`, `known` and `by_*` are not decayed."""

    name: str
    at: float
    due: float
    """From this time on, time without reported failures counts as successful probes."""
    period: float = 0.0
    """0 while no probes are running."""
    threshold: int = 1
    successes: float = 0.0
    failures: float = 0.0
    expected: float = 0.0
    """Probes that fell due since the last counter value."""
    pending: float = 0.0
    pending_weight: float = 0.0
    pending_at: float = 0.0
    unclaimed: float = 0.0
    reported_at: float = 0.0
    read_at: float = 0.0
    counted_successes: float | None = None
    counted_failures: float | None = None
    known: float = 0.0
    kills: int = 0
    by_events: float = 0.0
    by_counters: float = 0.0
    by_kills: float = 0.0
    last_failure: float = 0.0
    created: float = 0.0
    """When its pod was."""
    every: float = 0.0
    """The probe's period, also while no probes are running."""
    counted: float = 0.0
    """Failures that the counters show, decayed."""
    since: float = 0.0
    """When it was last started, or its node relieved: for a decision only later probes count."""
    recent: tuple[FailedProbes, ...] = ()
    recent_counted: tuple[FailedProbes, ...] = ()
    dropped: float = 0.0
    """Failures of the same trouble from before the last start or relief. They are no record of the pod itself."""
    dropped_at: float = 0.0

    @classmethod
    def first_seen(cls, container: Container, created: float, now: float, *, probing: bool) -> ContainerProbes:
        """A container that already runs counts as probed successfully until a failure is reported."""
        begin = _first_probe(container, now) if probing else now
        track = cls(container.name, min(begin, now), begin, created=created)
        track.follow(container, now, probing=probing)
        return track

    def follow(self, container: Container, now: float, *, probing: bool) -> None:
        """Use the probe's parameters from now on; the caller has advanced to `now`."""
        probe = container.liveness
        if probe is not None:
            self.threshold = max(1, probe.failure_threshold)
            self.every = probe.period
        if container.started is not None and container.restarts and min(container.started, now) > self.since:
            self.relieve(min(container.started, now))
            self.due = _first_probe(container, now)
        if probe is None or not probing:
            self.period = 0.0
            return
        self.period = probe.period
        self.due = max(self.due, _first_probe(container, now))

    def advance(self, now: float, half_life: float) -> None:
        elapsed = now - self.at
        if elapsed <= 0:
            return
        factor = decay(elapsed, half_life)
        self.successes *= factor
        self.failures *= factor
        self.pending_weight *= factor
        self.expected *= factor
        self.counted *= factor
        begin = max(self.at, self.due)
        if self.period > 0 and begin < now:
            self.expected += spread((now - begin) / self.period, begin, now, half_life)
        self.at = now
        if self.known and now - self.last_failure > _EVENTS_KEPT:
            self.known, self.kills, self.unclaimed = 0.0, 0, 0.0

    def relieve(self, at: float) -> None:
        if at > self.since:
            self._drop(sum(each.count - each.after(at) for each in self.recent))
            self.since = at
            self.recent = tuple(each for each in self.recent if each.last > at)
            self.recent_counted = tuple(each for each in self.recent_counted if each.last > at)

    def _drop(self, count: float) -> None:
        if self.at - self.dropped_at > _SAME_TROUBLE:
            self.dropped = 0.0
        if count > 0:
            self.dropped, self.dropped_at = self.dropped + count, self.at

    def recent_probes(self) -> RecentProbes:
        """As of `at`."""
        failed = sum(each.after(self.since) for each in self.recent)
        if self.at - self.dropped_at <= _SAME_TROUBLE:
            failed += self.dropped
        earlier = max(0.0, self.by_events + self.by_counters + self.by_kills - failed)
        return RecentProbes(
            at=self.at,
            since=self.since,
            due=self.due,
            period=self.period,
            failures=self.recent,
            counted=self.recent_counted,
            earlier_share=earlier / (self._probed() + _SHORT_RECORD),
        )

    @property
    def total_successes(self) -> float:
        return self.successes + max(0.0, self.expected - self.pending_weight)

    @property
    def total_failures(self) -> float:
        return self.failures + self.pending_weight

    def fail(self, count: float, span: Span, dated: float, half_life: float) -> bool:
        """Failures reported by an Event dated `dated`. True when any is new."""
        claimed = min(count, self.unclaimed) if self._may_be_known(dated) else 0.0
        self.unclaimed -= claimed
        fresh = self._possible(count - claimed)
        if fresh <= 0:
            return False
        self.by_events += fresh
        self._add_pending(fresh, span, half_life)
        return True

    def error(self, count: float, span: Span, half_life: float) -> bool:
        """Probes that could not be carried out. No counter has them, so nothing settles them later."""
        fresh = self._possible(count)
        if fresh <= 0:
            return False
        self.failures += self._weight(fresh, span, half_life)
        self.recent = self._with(self.recent, fresh, span)
        self.by_events += fresh
        self.last_failure = self.at
        return True

    def kill(self, count: int, span: Span, half_life: float) -> bool:
        self.kills += count
        self.last_failure = self.at
        self.due = max(self.due, self.at + _ENDING)
        missing = self._possible(self.kills * self.threshold - self.known)
        if missing <= 0:
            return False
        self.unclaimed += missing
        self.reported_at = self.at
        self.by_kills += missing
        self._add_pending(missing, span, half_life)
        return True

    def read(self, counter: ProbeCounter, since: float, half_life: float) -> bool:
        """A counter value; the first one covers the time from `since`. True when it shows new failures."""
        successes, failures = self._increase(counter)
        begin = since if self.counted_failures is None else self.read_at
        self._keep_value(counter)
        span = Span(min(begin, self.at), self.at)
        settled = min(self.pending, failures)
        self._settle(settled)
        fresh = failures - settled
        if self.at - self.pending_at > LOOK_BACK:
            self._settle(self.pending)
        self.successes += span.weight(successes, self.at, half_life)
        self.counted += span.weight(failures, self.at, half_life)
        self.recent_counted = self._with(self.recent_counted, failures, span)
        self.expected = 0.0
        self.reported_at = self.at
        if fresh <= 0:
            return False
        self.failures += span.weight(fresh, self.at, half_life)
        self.recent = self._with(self.recent, fresh, span)
        self.unclaimed += fresh
        self.known += fresh
        self.by_counters += fresh
        self.last_failure = self.at
        return True

    def start_reading(self, counter: ProbeCounter) -> None:
        """A first value that may include another pod of the same name: only the increase from here on counts."""
        self._keep_value(counter)

    def _keep_value(self, counter: ProbeCounter) -> None:
        self.counted_successes, self.counted_failures, self.read_at = counter.successes, counter.failures, self.at

    def _increase(self, counter: ProbeCounter) -> tuple[float, float]:
        if self.counted_successes is None or self.counted_failures is None:
            return counter.successes, counter.failures
        successes = counter.successes - self.counted_successes
        failures = counter.failures - self.counted_failures
        if successes < 0 or failures < 0:
            return counter.successes, counter.failures
        return successes, failures

    def _possible(self, count: float) -> float:
        """How many of so many more failures can have happened."""
        return min(count, 1 + self._probed() // 1 - (self.by_events + self.by_counters + self.by_kills))

    def _weight(self, count: float, span: Span, half_life: float) -> float:
        """Of failures that Events report. All failures together weigh no more than all probes do."""
        probes = 1 + spread(self._probed(), min(self.created, self.at), self.at, half_life)
        return min(span.weight(count, self.at, half_life), max(0.0, probes - self.total_failures))

    def _probed(self) -> float:
        """Probes that can have run after the first one."""
        return max(0.0, self.at - self.created) / self.every if self.every > 0 else 0.0

    def _may_be_known(self, dated: float) -> bool:
        return self.unclaimed > 0 and (self.at <= self.reported_at + GRACE or dated <= self.reported_at)

    def _add_pending(self, count: float, span: Span, half_life: float) -> None:
        self.pending_at = self.at
        self.pending += count
        self.pending_weight += self._weight(count, span, half_life)
        self.recent = self._with(self.recent, count, span)
        self.known += count
        self.last_failure = self.at

    def _with(self, groups: tuple[FailedProbes, ...], count: float, span: Span) -> tuple[FailedProbes, ...]:
        if count <= 0 or span.last <= self.since:
            return groups
        added = FailedProbes(min(span.first, span.last), span.last, count)
        groups = tuple(sorted((*groups, added), key=lambda group: (group.last, group.first)))
        if len(groups) <= _RECENT:
            return groups
        one, other, *rest = groups
        return (FailedProbes(one.first, max(one.last, other.last), one.count + other.count), *rest)

    def _settle(self, count: float) -> None:
        if count <= 0:
            return
        weight = self.pending_weight * count / self.pending
        self.pending -= count
        self.pending_weight -= weight
        self.failures += weight


def _first_probe(container: Container, now: float) -> float:
    delay = container.liveness.initial_delay if container.liveness else 0.0
    started = container.started if container.started is not None else now
    return min(started, now) + delay
