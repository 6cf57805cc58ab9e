"""Simulated nodes and ReplicaSets that keep one pod per app; a reporter is called for every change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from loadtests.simulation.clock import VirtualClock
from loadtests.simulation.cpu import SimulatedCpu
from loadtests.simulation.pod import Parameters, SimulatedPod, Surroundings
from loadtests.workloads.placement import App, NodeSpec, Placement
from loadtests.workloads.samples import RequestOutcome, RequestSample


@dataclass(frozen=True, slots=True)
class SimulationSpec:
    """What is simulated: nodes, and apps of one replica with equal resource requests."""

    nodes: tuple[NodeSpec, ...]
    apps: tuple[App, ...]
    placement: Placement
    """At the start."""
    namespace: str
    requests: Mapping[str, str]
    probe_period: float


class Reporter(Protocol):
    def pod_changed(self, pod: SimulatedPod) -> None: ...

    def probe_failed(self, pod: SimulatedPod) -> None: ...

    def container_killed(self, pod: SimulatedPod) -> None: ...


class SilentReporter:
    """For runs without a controller."""

    def pod_changed(self, pod: SimulatedPod) -> None:
        del pod

    def probe_failed(self, pod: SimulatedPod) -> None:
        del pod

    def container_killed(self, pod: SimulatedPod) -> None:
        del pod


class SimulatedCluster:
    def __init__(self, clock: VirtualClock, spec: SimulationSpec, parameters: Parameters) -> None:
        self.clock = clock
        self.spec = spec
        self.memory_bytes = parameters.memory_bytes
        self.pods: dict[str, SimulatedPod] = {}
        self.restarts = 0
        self.reporter: Reporter = SilentReporter()
        self._cpus = {node.name: SimulatedCpu(clock, node.cores) for node in spec.nodes}
        self._around = Surroundings(clock, parameters, spec.probe_period)
        self._routes: dict[str, SimulatedPod] = {}
        self._numbers: dict[str, int] = {}
        self._used_by_gone = dict.fromkeys((app.name for app in spec.apps), 0.0)
        for app in spec.apps:
            self.bind(self._create(app).uid, spec.placement[app.name])

    def bind(self, uid: str, node: str) -> None:
        pod = self.pods[uid]
        pod.bind(node, self._cpus[node])
        self.changed(pod)

    def evict(self, uid: str) -> None:
        """The replacement is there as soon as the old pod is on its way out."""
        pod = self.pods[uid]
        if not pod.deleting:
            pod.delete()
            self._create(pod.app)

    def placement(self) -> dict[str, str]:
        return {pod.app.name: pod.node for pod in self.pods.values() if pod.node is not None and not pod.deleting}

    def without_node(self) -> int:
        return sum(pod.node is None and not pod.deleting for pod in self.pods.values())

    def used(self) -> dict[str, float]:
        """CPU-seconds by node."""
        return {name: cpu.used_by_all() for name, cpu in self._cpus.items()}

    def used_by_apps(self) -> dict[str, float]:
        """CPU-seconds by app, those of its earlier pods included."""
        used = dict(self._used_by_gone)
        for pod in self.pods.values():
            used[pod.app.name] += pod.used()
        return used

    def memory_by_apps(self) -> dict[str, float]:
        """Bytes; a pod of the model holds the same amount under any load."""
        held = dict.fromkeys((app.name for app in self.spec.apps), 0.0)
        for pod in self._running():
            held[pod.app.name] += self.memory_bytes
        return held

    def memory_by_nodes(self) -> dict[str, float]:
        held = dict.fromkeys(self._cpus, 0.0)
        for pod in self._running():
            held[pod.node or ""] += self.memory_bytes
        return held

    def request(self, app: str, sample: RequestSample, timeout: float, samples: list[RequestSample]) -> None:
        """Sent where the routes point; the sample is completed when it has ended."""
        began = self.clock.time

        def ended(outcome: RequestOutcome) -> None:
            latency = self.clock.time - began if outcome is RequestOutcome.OK else timeout
            samples.append(sample._replace(latency=latency, outcome=outcome))

        target = self._routes.get(app)
        if target is None:
            ended(RequestOutcome.NO_READY_POD)
        else:
            target.ask("/", timeout, ended)

    def changed(self, pod: SimulatedPod) -> None:
        if pod.deleting and pod.node is None and self.pods.pop(pod.uid, None) is not None:
            self._used_by_gone[pod.app.name] += pod.used()
        self.clock.after(self._around.parameters.route_seconds, lambda: self._route(pod))
        self.reporter.pod_changed(pod)

    def unhealthy(self, pod: SimulatedPod) -> None:
        self.reporter.probe_failed(pod)

    def killed(self, pod: SimulatedPod) -> None:
        self.restarts += 1
        self.reporter.container_killed(pod)

    def _create(self, app: App) -> SimulatedPod:
        number = self._numbers[app.name] = self._numbers.get(app.name, 0) + 1
        pod = SimulatedPod(f"{app.name}-{number}", app, self._around, self)
        self.pods[pod.uid] = pod
        self.changed(pod)
        return pod

    def _route(self, pod: SimulatedPod) -> None:
        ready = next(self._ready_pods(pod.app.name), None)
        if ready is None:
            self._routes.pop(pod.app.name, None)
        else:
            self._routes[pod.app.name] = ready

    def _running(self) -> Iterator[SimulatedPod]:
        return (pod for pod in self.pods.values() if pod.node is not None)

    def _ready_pods(self, app: str) -> Iterator[SimulatedPod]:
        return (pod for pod in self.pods.values() if pod.app.name == app and pod.ready and not pod.deleting)
