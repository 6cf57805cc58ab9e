"""What the watchers complain about, as log lines and counters."""

from __future__ import annotations

import structlog

from reactor.cluster.decoding.decoder import MalformedObject
from reactor.cluster.kinds import Kind
from reactor.errors import ClusterError, Expired
from reactor.record.metrics import Instruments

log = structlog.get_logger(__name__)

REMEMBERED = 1_000


class WatchReport:
    def __init__(self, instruments: Instruments) -> None:
        self._instruments = instruments
        self._told: set[MalformedObject] = set()

    def malformed(self, malformed: MalformedObject) -> None:
        """Every list brings it again; it is logged once."""
        self._instruments.malformed.labels(malformed.kind).inc()
        if malformed in self._told:
            return
        if len(self._told) >= REMEMBERED:
            self._told.clear()
        self._told.add(malformed)
        log.warning("object left out: it cannot be read", kind=malformed.kind, problem=str(malformed))

    def trouble(self, kind: Kind, error: ClusterError, delay: float) -> None:
        self._instruments.watch_failures.labels(kind).inc()
        level = log.info if isinstance(error, Expired) else log.warning
        level("watch interrupted", kind=kind.value, error=str(error), again_in=round(delay, 2))
