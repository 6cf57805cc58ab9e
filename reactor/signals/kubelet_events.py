"""What a kubelet's Event says about a liveness probe, and how many of its occurrences are new."""

from __future__ import annotations

from enum import Enum, auto
from zlib import crc32

from reactor.cluster.records import Event
from reactor.signals.probe_counts import Span

_COMBINED = "(combined from similar events): "
_EVENTS_KEPT = 40
"""The kubelet sends at most 25 + 12 Warnings per pod in the hour for which the API server keeps events."""


class ProbeOutcome(Enum):
    FAILED = auto()
    """A liveness probe failed. The kubelet's counter has it, too, and it can lead to a kill."""
    ERRORED = auto()
    """A liveness probe could not be carried out. The kubelet neither counts it nor kills the container for it."""
    KILLED = auto()
    """The container is restarted because it failed its liveness probe."""
    OTHER = auto()
    """The Event is not about a liveness probe."""


def probe_outcome(event: Event) -> ProbeOutcome:
    reason = event.reason
    if reason == "Unhealthy":
        message = event.message.removeprefix(_COMBINED)
        if message.startswith("Liveness probe failed"):
            return ProbeOutcome.FAILED
        if message.startswith("Liveness probe errored"):
            return ProbeOutcome.ERRORED
    elif reason == "Killing" and "failed liveness probe" in event.message:
        return ProbeOutcome.KILLED
    return ProbeOutcome.OTHER


def is_combined(event: Event) -> bool:
    """One Event for many messages of any probe: its message is the newest occurrence's only."""
    return event.message.startswith(_COMBINED)


def container_of(event: Event) -> str:
    """From `spec.containers{web}`; empty where the reporter does not say."""
    _, brace, rest = event.field_path.partition("{")
    return rest.rstrip("}") if brace else ""


CountedEvents = dict[int, int]
"""The count up to which each Event of a pod was counted: crc32(name) -> crc32(uid) << 32 | count, oldest first."""


def new_occurrences(counted: CountedEvents, event: Event) -> int:
    """How many occurrences were not counted before; they are counted now.

    When a kubelet's Event has expired, the kubelet creates it again with the same name and the next count, so the
    name is the key. Only a count that starts again as well means another series of occurrences.
    """
    key = crc32(event.name.encode())
    owner = crc32(event.uid.encode())
    count = max(1, event.count)
    old = counted.pop(key, 0)
    seen, same = old & 0xFFFFFFFF, old >> 32 == owner
    if same and count <= seen:
        counted[key] = old
        return 0
    counted[key] = owner << 32 | count
    if len(counted) > _EVENTS_KEPT:
        del counted[next(iter(counted))]
    return count - seen if count > seen else count


def span_of(event: Event, occurrences: int, now: float, *, listed: bool) -> Span:
    """When the newest `occurrences` happened.

    A watched Event happened now, whatever its node's clock says; only its duration is taken from that clock.
    A listed Event is history: it ends at its lastTimestamp, which may not lie in the future.
    """
    last = min(event.last or now, now) if listed else now
    length = max(0.0, event.last - event.first)
    share = (occurrences - 1) / (event.count - 1) if event.count > 1 else 0.0
    return Span(last - length * share, last)
