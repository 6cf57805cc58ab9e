"""What a latency meter publishes about one pod, as JSON, and what of it is believed."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from enum import StrEnum

import msgspec
from msgspec import Struct

LONGEST = 4096
"""Bytes of one message."""
LONGEST_RTT = 60.0
FUTURE = 5.0
"""Seconds by which the clock of a meter may be ahead of ours."""


class Refusal(StrEnum):
    """Why a message is not believed."""

    MALFORMED = "malformed"
    OUT_OF_RANGE = "outOfRange"
    FOREIGN_NAMESPACE = "foreignNamespace"
    """It is about a pod of another namespace than its topic, or of one that is not listened to."""
    UNKNOWN_POD = "unknownPod"
    """No running pod has this namespace, name and UID."""
    NO_ROLE = "noRole"
    """The pod is neither a target nor a probe."""
    LATE = "late"
    """Older than `latency.freshness`, or than the last one of the pod."""
    DUPLICATE = "duplicate"
    FUTURE = "future"
    UNANSWERED = "unanswered"
    """All requests were lost: that is no round trip, and the one before does not count any more."""


class LatencyMessage(Struct, frozen=True, rename="camel", kw_only=True):
    namespace: str
    pod: str
    uid: str
    timestamp: str
    """RFC 3339: when the last request was answered or given up."""
    rtt_seconds: float | None
    """Mean of the answered requests; null when none was."""
    jitter_seconds: float | None = None
    """Mean difference of two consecutive round trips."""
    loss: float = 0.0
    """Share of the requests without an answer."""
    requests: int = 0
    mode: str = "udp"

    def at(self) -> float:
        """Seconds since the epoch. Raises ValueError."""
        found = datetime.fromisoformat(self.timestamp)
        if found.tzinfo is None:
            raise ValueError(f"{self.timestamp!r} has no time zone")
        return found.timestamp()


_DECODER = msgspec.json.Decoder(LatencyMessage)


def encode_message(message: LatencyMessage) -> bytes:
    return msgspec.json.encode(message)


def rfc3339_precise(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def parse_message(payload: bytes) -> tuple[LatencyMessage, float] | Refusal:
    """The message and its time."""
    if len(payload) > LONGEST:
        return Refusal.MALFORMED
    try:
        message = _DECODER.decode(payload)
        at = message.at()
    except (msgspec.DecodeError, UnicodeDecodeError, ValueError, OverflowError):
        return Refusal.MALFORMED
    rtt, jitter = message.rtt_seconds, message.jitter_seconds
    in_range = rtt is None or (math.isfinite(rtt) and 0 < rtt <= LONGEST_RTT)
    in_range &= jitter is None or (math.isfinite(jitter) and 0 <= jitter <= LONGEST_RTT)
    return (message, at) if in_range and 0 <= message.loss <= 1 and message.requests >= 0 else Refusal.OUT_OF_RANGE
