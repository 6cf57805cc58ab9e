"""What the sources of measurement hand over: one typed value per series, times in seconds since the epoch.

Units are cores and bytes. A value is what the source said; whether it is usable is told by `Quality`,
never by a zero.
"""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct


class Source(StrEnum):
    PROMETHEUS = "prometheus"
    METRICS_API = "metrics.k8s.io"


class Quality(StrEnum):
    """Only FRESH may be used as a number."""

    FRESH = "fresh"
    STALE = "stale"
    MISSING = "missing"
    INVALID = "invalid"


class PodUsageSample(Struct, frozen=True, gc=False):
    """None is an axis that the source did not tell; NaN one that it told wrongly (invalid)."""

    namespace: str
    pod: str
    cpu: float | None
    memory: float | None
    at: float


class NodeUsageSample(Struct, frozen=True, gc=False):
    """As PodUsageSample; `node` is the name in the cluster, or a host name or address where the source has no other."""

    node: str
    cpu: float | None
    memory: float | None
    at: float


class ThrottleSample(Struct, frozen=True, gc=False):
    """Share (0..1) of the scheduling periods in which the pod ran into its CPU limit."""

    namespace: str
    pod: str
    share: float
    at: float


class NetworkSample(Struct, frozen=True, gc=False):
    """Bits per second that the pod receives and sends together."""

    namespace: str
    pod: str
    rate: float
    at: float


class LinkSample(Struct, frozen=True, gc=False):
    """Bits per second that the node's link can carry."""

    node: str
    speed: float
    at: float


class ProbeCounter(Struct, frozen=True, gc=False):
    """`prober_probe_total` of one container's liveness probe; `uid` is empty where the kubelet does not label it."""

    namespace: str
    pod: str
    container: str
    successes: float
    failures: float
    at: float
    uid: str = ""
