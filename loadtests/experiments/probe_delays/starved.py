"""From the first failed probe to the start of the move, on a node that is suddenly starved.

STABLE's nodes and apps in simulated time, with the controller itself: after a quiet time the load rises to where the
weak node is overrun and the cluster has room.
"""

from __future__ import annotations

from dataclasses import dataclass

from loadtests.experiments.stable.apps import NAMESPACE, REQUESTS, draw_apps, expected_placement
from loadtests.experiments.stable.design import Design, Pace
from loadtests.experiments.stable.simulated import SimulatedDriver
from loadtests.simulation.clock import VirtualClock
from loadtests.simulation.cluster import SimulatedCluster, SimulationSpec
from loadtests.simulation.controller import SimulatedController
from loadtests.simulation.pod import CALIBRATED, SimulatedPod
from loadtests.simulation.records import WatchedCluster, evicting
from loadtests.workloads.samples import RequestOutcome, RequestSample
from reactor.execution.cycle_outcome import Outcome
from reactor.settings.model import Settings
from storage.store import Store

QUIET, STARVED = 0.4, 0.8
"""Of what all nodes together can serve. The weak node has 1.5 to 1.75 times its share."""
QUIET_PERIODS = 12
"""Probe periods of quiet, so that the past is as good as it gets."""
LONGEST_SECONDS = 240.0
TIMEOUT = 2.0


@dataclass(frozen=True, slots=True)
class Starvation:
    """Seconds after the first failed probe; None if it did not come to that."""

    move: float | None
    kills: int
    """Of containers by the kubelet until the move, in the whole cluster."""
    second_kill: float | None
    """Of the pod that was killed twice first."""


class _Watch:
    """Notes when probes fail and containers are killed, and passes everything on."""

    def __init__(self, cluster: SimulatedCluster) -> None:
        self._clock, self._inner = cluster.clock, cluster.reporter
        self.first_failure: float | None = None
        self.second_kill: float | None = None
        self.kills: dict[str, int] = {}

    def pod_changed(self, pod: SimulatedPod) -> None:
        self._inner.pod_changed(pod)

    def probe_failed(self, pod: SimulatedPod) -> None:
        self.first_failure = self._clock.time if self.first_failure is None else self.first_failure
        self._inner.probe_failed(pod)

    def container_killed(self, pod: SimulatedPod) -> None:
        self.kills[pod.uid] = self.kills.get(pod.uid, 0) + 1
        if self.kills[pod.uid] == 2 and self.second_kill is None:
            self.second_kill = self._clock.time
        self._inner.container_killed(pod)


async def starve(seed: int, period: int, store: Store, settings: Settings) -> Starvation:
    """One run; it ends with the first move."""
    design = Design(Pace(LONGEST_SECONDS, period), (seed,), (seed,))
    default = expected_placement(design, seed)
    apps = draw_apps(design, seed, default)
    clock = VirtualClock()
    spec = SimulationSpec(design.nodes, apps, default, NAMESPACE, REQUESTS, probe_period=float(period))
    cluster = SimulatedCluster(clock, spec, CALIBRATED)
    window = max(CALIBRATED.usage_seconds, settings.metrics.metrics_api.interval)
    controller = SimulatedController(WatchedCluster(cluster), evicting(settings), store, window)
    cluster.reporter = watch = _Watch(cluster)
    moved: list[float] = []

    def listen(outcome: Outcome) -> None:
        moved.extend(clock.time for move in outcome.moves if move.began is not None)

    controller.listen(listen)
    capacity = await SimulatedDriver(design, store).capacity(apps)
    quiet = 8.0 + QUIET_PERIODS * period
    for rate, begin, seconds in ((QUIET, 8.0, quiet - 8.0), (STARVED, quiet, LONGEST_SECONDS)):
        _load(cluster, rate * capacity, begin, seconds)
    until = quiet + LONGEST_SECONDS
    while clock.step(until) and not moved:
        await controller.step_if_due()
    first = watch.first_failure
    if first is None:
        return Starvation(None, 0, None)
    return Starvation(
        move=moved[0] - first if moved else None,
        kills=sum(watch.kills.values()),
        second_kill=None if watch.second_kill is None else watch.second_kill - first,
    )


def _load(cluster: SimulatedCluster, rate: float, begin: float, seconds: float) -> None:
    """The apps in turn, evenly spaced. Answers are thrown away."""
    apps = [app.name for app in cluster.spec.apps]
    total = rate * len(apps)
    for number in range(int(seconds * total)):
        cluster.clock.at(begin + number / total, _Sending(cluster, apps[number % len(apps)]))


@dataclass(frozen=True, slots=True)
class _Sending:
    cluster: SimulatedCluster
    app: str

    def __call__(self) -> None:
        sample = RequestSample(self.app, 0.0, TIMEOUT, RequestOutcome.TIMEOUT)
        self.cluster.request(self.app, sample, TIMEOUT, [])
