"""What a kubelet's Event says about a liveness probe, and how often it said it since we last looked."""

from __future__ import annotations

from enum import Enum, auto
from zlib import crc32

from reactor.cluster.records import Event
from reactor.signals.probe_counts import Span

_COMBINED = "(combined from similar events): "
_MARKS_KEPT = 40
"""The kubelet lets at most 25 + 12 Warnings of a pod through in the hour that the API server keeps events."""


class ProbeNews(Enum):
    FAILED = auto()
    """A liveness probe failed: also in the kubelet's counter, and on the way to a kill."""
    ERRORED = auto()
    """A liveness probe could not be carried out: the kubelet neither counts it nor kills for it."""
    KILLED = auto()
    """The container is restarted because it failed its liveness probe."""
    OTHER = auto()


def probe_news(event: Event) -> ProbeNews:
    reason = event.reason
    if reason == "Unhealthy":
        message = event.message.removeprefix(_COMBINED)
        if message.startswith("Liveness probe failed"):
            return ProbeNews.FAILED
        if message.startswith("Liveness probe errored"):
            return ProbeNews.ERRORED
    elif reason == "Killing" and "failed liveness probe" in event.message:
        return ProbeNews.KILLED
    return ProbeNews.OTHER


def is_combined(event: Event) -> bool:
    """One Event for many messages, of any probe: its message tells the kind of the newest occurrence only."""
    return event.message.startswith(_COMBINED)


def container_of(event: Event) -> str:
    """From `spec.containers{web}`; empty where the reporter does not say."""
    _, brace, rest = event.field_path.partition("{")
    return rest.rstrip("}") if brace else ""


Marks = dict[int, int]
"""Per Event of a pod how far it was counted: crc32(name) -> crc32(uid) << 32 | count, oldest news first."""


def fresh_occurrences(marks: Marks, event: Event) -> int:
    """How many occurrences are news, noting them as seen.

    A kubelet whose Event has expired makes it anew with the same name and the next count, so the name is the
    key; only when the count starts again as well is it another series.
    """
    key = crc32(event.name.encode())
    owner = crc32(event.uid.encode())
    count = max(1, event.count)
    old = marks.pop(key, 0)
    seen, same = old & 0xFFFFFFFF, old >> 32 == owner
    if same and count <= seen:
        marks[key] = old
        return 0
    marks[key] = owner << 32 | count
    if len(marks) > _MARKS_KEPT:
        del marks[next(iter(marks))]
    return count - seen if count > seen else count


def span_of(event: Event, fresh: int, now: float, *, listed: bool) -> Span:
    """When the `fresh` newest occurrences happened.

    A live Event happened now whatever its node's clock says; only its length is taken from that clock.
    A listed one is history dated by its lastTimestamp, which may not lie in the future.
    """
    last = min(event.last or now, now) if listed else now
    length = max(0.0, event.last - event.first)
    share = (fresh - 1) / (event.count - 1) if event.count > 1 else 0.0
    return Span(last - length * share, last)
