"""What is kept of a run on real nodes."""

from __future__ import annotations

from loadtests.experiments.kse.results import Run


class RealRun(Run, frozen=True):
    """Its figures of nodes are in KSE's millicores, so that they stand beside simulated and recorded ones."""

    requests: int
    request_ms: float
    """CPU of a request, as measured, with what pods use at rest."""
    outside_idle: float
    """Cores of the machine that nobody used, of those that are not promised to the nodes."""
    late_ms: float
    unsent: float
    delay_ms: float | None
    saturated: bool
    """The machine itself may have held pods or the load tool back."""
    at: str
