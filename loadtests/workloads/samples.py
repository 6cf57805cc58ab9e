"""Samples of requests and their summary. A failed request counts with its timeout in the latencies."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from reactor.clock import Clock


class RequestOutcome(StrEnum):
    OK = "ok"
    ERROR_STATUS = "errorStatus"
    TIMEOUT = "timeout"
    REFUSED = "refused"
    CLOSED = "closed"
    NO_READY_POD = "noReadyPod"
    TOO_MANY_IN_FLIGHT = "tooManyInFlight"
    """The generator's own bound, not the app: a run with any of these says little."""


class RequestSample(NamedTuple):
    app: str
    start: float
    """Seconds into the run at which the request was due, not when the generator came round to it."""
    latency: float
    """Seconds; the timeout when it failed."""
    outcome: RequestOutcome


@dataclass(frozen=True, slots=True)
class LoadSummary:
    requests: int
    failures: int
    availability: float | None
    """Share that succeeded; None when nothing was asked."""
    p50_ms: float | None
    p95_ms: float | None
    p99_ms: float | None


def percentile(ordered: Sequence[float], share: float) -> float:
    """Linear between the neighbours, as numpy and k6 do."""
    position = share * (len(ordered) - 1)
    low = int(position)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (position - low)


def summarise(samples: Iterable[RequestSample]) -> LoadSummary:
    samples = list(samples)
    if not samples:
        return LoadSummary(0, 0, None, None, None, None)
    failures = sum(sample.outcome is not RequestOutcome.OK for sample in samples)
    latencies = sorted(sample.latency * 1000 for sample in samples)
    p50, p95, p99 = (percentile(latencies, share) for share in (0.50, 0.95, 0.99))
    return LoadSummary(len(samples), failures, 1 - failures / len(samples), p50, p95, p99)


def summarise_by_app(samples: Iterable[RequestSample]) -> dict[str, LoadSummary]:
    by_app: dict[str, list[RequestSample]] = defaultdict(list)
    for sample in samples:
        by_app[sample.app].append(sample)
    return {app: summarise(by_app[app]) for app in sorted(by_app)}


class LoadLog:
    """Every sample of a run, and the last few seconds of them for dashboards."""

    def __init__(self, clock: Clock, window: float = 10.0) -> None:
        self._clock = clock
        self._window = window
        self._recent: deque[tuple[float, RequestSample]] = deque()
        self.samples: list[RequestSample] = []

    def add(self, sample: RequestSample) -> None:
        self.samples.append(sample)
        self._recent.append((self._clock.monotonic(), sample))
        self._forget()

    def recent(self) -> LoadSummary:
        """Requests that ended in the last window."""
        self._forget()
        return summarise(sample for _, sample in self._recent)

    def _forget(self) -> None:
        since = self._clock.monotonic() - self._window
        while self._recent and self._recent[0][0] < since:
            self._recent.popleft()
