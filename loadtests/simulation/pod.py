"""One pod on a simulated node: its container, its probes, its restarts. A listener is called for every change."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from loadtests.simulation.clock import VirtualClock
from loadtests.simulation.cpu import SimulatedCpu
from loadtests.workloads.app_spec import AppSpec
from loadtests.workloads.placement import App
from loadtests.workloads.samples import RequestOutcome
from loadtests.workloads.webapp import Request, WebApp

PROBE_TIMEOUT = 1.0
FAILURE_THRESHOLD = 3
READINESS_PERIOD = 1.0
Ended = Callable[[RequestOutcome], None]


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


@dataclass(frozen=True, slots=True)
class Surroundings:
    clock: VirtualClock
    parameters: Parameters
    probe_period: float


class Listener(Protocol):
    """The kubelet's reports about a pod."""

    def changed(self, pod: SimulatedPod) -> None: ...

    def unhealthy(self, pod: SimulatedPod) -> None: ...

    def killed(self, pod: SimulatedPod) -> None: ...


class SimulatedPod:
    def __init__(self, uid: str, app: App, around: Surroundings, listener: Listener) -> None:
        self.uid, self.app = uid, app
        self.created = around.clock.now()
        self.node: str | None = None
        self.ready = self.deleting = False
        self.restarts = self.successes = self.failures = 0
        self.started: float | None = None
        self.terminated: float | None = None
        """When its container was last killed for its liveness probe."""
        self._around = around
        self._listener = listener
        self._cpu: SimulatedCpu | None = None
        self._used = 0.0
        self._web: WebApp | None = None
        self._life = 0
        """Which container this is: what belongs to an earlier one is void."""
        self._failed_in_a_row = self._unready_in_a_row = 0

    def bind(self, node: str, cpu: SimulatedCpu) -> None:
        self.node, self._cpu = node, cpu
        cpu.add_pod(self.uid, 1.0)
        self._around.clock.after(self._around.parameters.start_seconds, self._boot)

    def used(self) -> float:
        """CPU-seconds so far, also of a pod that is gone."""
        return self._cpu.used(self.uid) if self._cpu is not None else self._used

    def ask(self, path: str, timeout: float, ended: Ended) -> None:
        """One request; `ended` is called exactly once."""
        if self._web is None:
            self._around.clock.after(0.0, lambda: ended(RequestOutcome.REFUSED))
            return
        open_until_answered = [True]

        def answered() -> None:
            if open_until_answered:
                open_until_answered.clear()
                ended(RequestOutcome.OK)

        request = self._web.accept(path, answered)
        if request is None:
            self._around.clock.after(0.0, lambda: ended(RequestOutcome.CLOSED))
            return
        self._around.clock.after(timeout, lambda: self._give_up(request, open_until_answered, ended))

    def delete(self) -> None:
        """Requests are taken a little longer, then the container ends."""
        self.deleting, self.ready = True, False
        self._listener.changed(self)
        self._around.clock.after(self._around.parameters.stop_seconds, self._gone)

    def _give_up(self, request: Request, open_until_answered: list[bool], ended: Ended) -> None:
        if open_until_answered:
            open_until_answered.clear()
            if self._web is not None:
                self._web.abandon(request)
            ended(RequestOutcome.TIMEOUT)

    def _gone(self) -> None:
        self._stop_container()
        if self._cpu is not None:
            self._used = self._cpu.used(self.uid)
            self._cpu.remove_pod(self.uid)
            self._cpu = None
        self.node = None
        self._listener.changed(self)

    def _boot(self) -> None:
        if self._cpu is None or self.deleting:
            return
        parameters = self._around.parameters
        spec = AppSpec(
            work_ms=parameters.request_ms(self.app.work_ms),
            work_spread=0.0,
            probe_work_ms=parameters.probe_work_ms,
            workers=parameters.workers,
            backlog=parameters.backlog,
            startup_ms=parameters.startup_ms,
        )
        self._life += 1
        web, life = WebApp(spec, self._cpu, self.uid, 0), self._life
        web.boot(lambda: self._listen(web, life))

    def _listen(self, web: WebApp, life: int) -> None:
        if life != self._life or self.deleting:
            return
        self._web = web
        self.started = self._around.clock.now()
        self._failed_in_a_row = self._unready_in_a_row = 0
        self._listener.changed(self)
        self._probe_readiness(life)
        self._around.clock.after(self._around.probe_period, lambda: self._probe_liveness(life))

    def _probe_liveness(self, life: int) -> None:
        if life != self._life or self.deleting:
            return
        self._around.clock.after(self._around.probe_period, lambda: self._probe_liveness(life))
        self.ask("/healthz", PROBE_TIMEOUT, lambda outcome: self._probed_liveness(life, outcome))

    def _probed_liveness(self, life: int, outcome: RequestOutcome) -> None:
        if life != self._life or self.deleting:
            return
        if outcome is RequestOutcome.OK:
            self.successes += 1
            self._failed_in_a_row = 0
            return
        self.failures += 1
        self._failed_in_a_row += 1
        self._listener.unhealthy(self)
        if self._failed_in_a_row >= FAILURE_THRESHOLD:
            self._restart()

    def _probe_readiness(self, life: int) -> None:
        if life != self._life or self.deleting:
            return
        self._around.clock.after(READINESS_PERIOD, lambda: self._probe_readiness(life))
        self.ask("/readyz", PROBE_TIMEOUT, lambda outcome: self._probed_readiness(life, outcome))

    def _probed_readiness(self, life: int, outcome: RequestOutcome) -> None:
        if life != self._life or self.deleting:
            return
        self._unready_in_a_row = 0 if outcome is RequestOutcome.OK else self._unready_in_a_row + 1
        if outcome is RequestOutcome.OK and not self.ready:
            self.ready = True
            self._listener.changed(self)
        elif self._unready_in_a_row >= FAILURE_THRESHOLD and self.ready:
            self.ready = False
            self._listener.changed(self)

    def _restart(self) -> None:
        """The kubelet kills the container; the first new one comes at once, later ones after a pause."""
        self._listener.killed(self)
        self._stop_container()
        self.ready = False
        back_off = self._around.parameters.back_off
        pause = back_off[min(self.restarts, len(back_off) - 1)] + self._around.parameters.stop_seconds
        self.restarts += 1
        self.terminated = self._around.clock.now()
        self._listener.changed(self)
        self._around.clock.after(pause, self._boot)

    def _stop_container(self) -> None:
        self._life += 1
        if self._web is not None:
            self._web.kill()
            self._web = None
