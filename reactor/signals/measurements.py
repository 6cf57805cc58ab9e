"""Measurements and their quality. Units are cores, bytes, bits per second; times are seconds since the epoch.

A sample is what a source said. `Quality` says whether the value may be used; zero is a value like any other.
"""

from __future__ import annotations

import math
from enum import StrEnum

from msgspec import Struct


class MetricsSource(StrEnum):
    PROMETHEUS = "prometheus"
    METRICS_API = "metrics.k8s.io"
    PLUGINS = "rematch.sources"
    """Users' own metrics."""


class Quality(StrEnum):
    """Only FRESH may be used as a number."""

    FRESH = "fresh"
    STALE = "stale"
    MISSING = "missing"
    INVALID = "invalid"


class ThrottleSample(Struct, frozen=True, gc=False):
    """Share (0..1) of the scheduling periods in which the pod ran into its CPU limit."""

    namespace: str
    pod: str
    share: float
    at: float


class PressureSample(Struct, frozen=True, gc=False):
    """Share (0..1) of the time in which some task of the pod waited for a CPU: PSI of its cgroup (v2 only)."""

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


class DiskSample(Struct, frozen=True, gc=False):
    """Bytes per second that the pod reads and writes together."""

    namespace: str
    pod: str
    rate: float
    at: float


class NodeRateSample(Struct, frozen=True, gc=False):
    """All that goes over the node's links (bits per second) or to its disks (bytes per second), whoever sends it."""

    node: str
    rate: float
    at: float


class LinkSample(Struct, frozen=True, gc=False):
    """Bits per second that the node's link can carry."""

    node: str
    speed: float
    at: float


class ProbeCounter(Struct, frozen=True, gc=False):
    """`prober_probe_total` of one container's liveness probe; `uid` is empty where the metric has no such label."""

    namespace: str
    pod: str
    container: str
    successes: float
    failures: float
    at: float
    uid: str = ""


class Measurement(Struct, frozen=True, gc=False):
    """`value` is the newest one, NaN when there is none. Use `fresh`, which is None unless the value may be used."""

    quality: Quality
    value: float = math.nan
    at: float = 0.0
    source: MetricsSource | None = None

    @property
    def fresh(self) -> float | None:
        return self.value if self.quality is Quality.FRESH else None


MISSING = Measurement(Quality.MISSING)


class Usage(Struct, frozen=True, gc=False):
    """Cores and bytes."""

    cpu: Measurement = MISSING
    memory: Measurement = MISSING

    @property
    def known(self) -> bool:
        return self.cpu.fresh is not None and self.memory.fresh is not None


class Peak(Struct, frozen=True, gc=False):
    """Cores and bytes that will be needed soon; None where usage was never measured."""

    cpu: float | None = None
    memory: float | None = None


UNKNOWN_PEAK = Peak()
