"""Decayed counts of successful and failed liveness probes."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from msgspec import Struct


def decay(age: float, half_life: float) -> float:
    """The weight of one probe `age` seconds later; a probe dated in the future has its full weight."""
    return 1.0 if age <= 0 else 0.5 ** (age / half_life)


def spread(count: float, first: float, last: float, half_life: float) -> float:
    """The weight at `last` of `count` probes that happened evenly from `first` to `last`."""
    halvings = (last - first) / half_life * math.log(2)
    if halvings < 1e-12:
        return count
    return count * (-math.expm1(-halvings) / halvings)


@dataclass(frozen=True, slots=True)
class HalfLife:
    """After which a probe counts half: so many seconds, or so many probes if that is sooner."""

    seconds: float
    probes: float = math.inf

    def of(self, period: float) -> float:
        """In seconds, for a probe of this period."""
        return self.seconds if period <= 0 else min(self.seconds, self.probes * period)


@dataclass(frozen=True, slots=True)
class ProbeCounts:
    """Decayed numbers of successful and failed liveness probes."""

    successes: float = 0.0
    failures: float = 0.0
    counted: float = 0.0
    """Failures that the kubelet's counters show; the others are known by Events alone."""


class Span(Struct, frozen=True, gc=False):
    """The time in which a number of probes happened, evenly from `first` to `last`."""

    first: float
    last: float

    def weight(self, count: float, now: float, half_life: float) -> float:
        return spread(count, self.first, self.last, half_life) * decay(now - self.last, half_life)


class FailedProbes(Struct, frozen=True, array_like=True, gc=False):
    """Some failed probes, evenly from `first` to `last`."""

    first: float
    last: float
    count: float

    def after(self, since: float) -> float:
        """How many of them failed after this time."""
        if since < self.first:
            return self.count
        return 0.0 if since >= self.last else self.count * (self.last - since) / (self.last - self.first)


@dataclass(frozen=True, slots=True)
class RecentProbes:
    """The last probes of one container, not decayed. What was before its last start or relief is not here."""

    at: float
    since: float
    """Of its last start or relief."""
    due: float
    """From here on, time without a known failure means that probes passed."""
    period: float
    """0 while no probes are running."""
    failures: tuple[FailedProbes, ...]
    """Oldest first."""
    counted: tuple[FailedProbes, ...] = ()
    """Those that the kubelet's counters show."""
    earlier_share: float = 0.0
    """The share of its probes that failed before these."""

    def failed(self, since: float = 0.0) -> float:
        return _after(self.failures, since)

    def counted_failed(self, since: float = 0.0) -> float:
        return _after(self.counted, since)

    def passed(self, since: float, until: float | None = None) -> float:
        """How many probes passed between these times."""
        end, begin = self.at if until is None else until, max(since, self.since, self.due)
        if self.period <= 0 or begin >= end:
            return 0.0
        failed = self.failed(begin) - self.failed(end)
        return max(0.0, (end - begin) / self.period - failed)

    def first_failure(self, since: float) -> float | None:
        return next((max(each.first, since) for each in self.failures if each.last > since), None)

    @property
    def last_failure(self) -> float | None:
        return max((each.last for each in self.failures), default=None)


def _after(failures: Iterable[FailedProbes], since: float) -> float:
    return sum(each.after(since) for each in failures)
