"""One drawn instance of a scenario, as values: nodes, apps, load over time, the first placement, what happens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from loadtests.tournament.queues import Floats
from loadtests.tournament.scenario import Scenario
from loadtests.workloads.placement import NodeSpec
from matching.problem import Rules, Taint

ZONE = "topology.kubernetes.io/zone"


@dataclass(frozen=True, slots=True)
class AppModel:
    name: str
    replicas: int
    work: float
    """CPU-seconds of one request."""
    rate: float
    """Requests per second to all replicas together, at the factor 1."""
    cpu_request: float
    memory_request: float
    memory: float
    limit: float = float("inf")
    start_seconds: float = 1.1
    workers: int = 8
    backlog: int = 32
    rules: Rules = field(default_factory=Rules)
    apart: bool = False
    spread_zones: bool = False
    leak: float = 0.0
    """Bytes per second."""
    pinned: str = ""
    """The node of a pod that is nobody's to move; its `rate` are cores."""

    @property
    def need(self) -> float:
        """Cores of one replica at the factor 1."""
        return self.rate if self.pinned else self.rate * self.work / self.replicas


@dataclass(frozen=True, slots=True)
class NodeModel:
    spec: NodeSpec
    taints: tuple[Taint, ...] = ()

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def zone(self) -> str:
        return self.spec.labels.get(ZONE, "")


@dataclass(frozen=True, slots=True)
class LoadPlan:
    """Factors of the apps' rates, constant between two times."""

    starts: Floats
    factors: Floats
    """(times, apps)."""

    def at(self, time: float) -> Floats:
        found: Floats = self.factors[max(0, int(np.searchsorted(self.starts, time, side="right")) - 1)]
        return found

    def next_change(self, time: float) -> float:
        later = self.starts[self.starts > time]
        return float(later[0]) if len(later) else float("inf")


@dataclass(frozen=True, slots=True)
class RolloutModel:
    app: str
    at: float
    factor: float


@dataclass(frozen=True, slots=True)
class LossModel:
    node: str
    at: float
    until: float
    eviction_after: float


@dataclass(frozen=True, slots=True)
class BrokenModel:
    app: str
    at: float
    failing: float


@dataclass(frozen=True, slots=True)
class NoiseModel:
    share: float = 0.0
    bursts_per_day: float = 0.0
    burst_seconds: float = 0.0
    burst_share: float = 0.0


@dataclass(frozen=True, slots=True)
class Instance:
    scenario: Scenario
    seed: int
    nodes: tuple[NodeModel, ...]
    apps: tuple[AppModel, ...]
    load: LoadPlan
    placement: Mapping[str, tuple[str, ...]]
    """By app: the nodes of its replicas at the start."""
    rollouts: tuple[RolloutModel, ...] = ()
    losses: tuple[LossModel, ...] = ()
    broken: tuple[BrokenModel, ...] = ()
    noise: NoiseModel = NoiseModel()

    @property
    def seconds(self) -> float:
        return self.scenario.seconds

    def node_loads(self) -> Floats:
        """(times, nodes): what the pods of the first placement want over the cores of their nodes, whenever the load
        changes."""
        times = np.array(self.changes())
        factors = np.stack([self.load.at(time) for time in times])
        names = [node.name for node in self.nodes]
        wanted = np.zeros((len(times), len(names)))
        for index, app in enumerate(self.apps):
            need = app.need * factors[:, index]
            for rollout in self.rollouts:
                if rollout.app == app.name:
                    need = np.where(times >= rollout.at, need * rollout.factor, need)
            for node in self.placement[app.name]:
                wanted[:, names.index(node)] += need
        loads: Floats = wanted / np.array([node.spec.cores for node in self.nodes])
        return loads

    def changes(self) -> list[float]:
        """When the load changes, or who bears it: after such a time a second move of a pod is no mistake."""
        times: list[float] = [*self.load.starts.tolist()]
        times += [rollout.at for rollout in self.rollouts]
        times += [broken.at for broken in self.broken]
        times += [time for loss in self.losses for time in (loss.at, loss.until)]
        return sorted(times)
