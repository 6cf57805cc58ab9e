"""What the model takes from the real nodes. `docs/experiment.md` tells how each figure was measured."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Parameters:
    work_factor: float = 1.07
    """CPU that a nominal millisecond of the app's work really takes."""
    overhead_ms: float = 0.5
    """CPU that a request costs beyond the app's own work: the HTTP server, the kernel's part."""
    probe_work_ms: float = 0.6
    """CPU of one answer to a probe, overhead included."""
    start_seconds: float = 1.1
    """From the binding to the start of the app's process."""
    startup_ms: float = 5.0
    """CPU of the app before it listens."""
    stop_seconds: float = 0.6
    """From the signal to end until the container is gone."""
    drain_seconds: float = 0.3
    """How long requests are still taken after that signal."""
    route_seconds: float = 0.15
    """Until a change of a pod's readiness reaches the routes."""
    usage_seconds: float = 5.0
    """Over which a kubelet averages the CPU that it reports."""
    workers: int = 8
    backlog: int = 32
    memory_bytes: float = 12e6
    back_off: tuple[float, ...] = (0.0, 10.0, 20.0, 40.0, 80.0, 160.0, 300.0)
    """Pause before a restart, by how often the container was restarted."""

    def request_ms(self, work_ms: float) -> float:
        """CPU of one request to an app of that much nominal work."""
        return work_ms * self.work_factor + self.overhead_ms


CALIBRATED = Parameters()
