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
        return self.rate * self.work / self.replicas


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

    def changes(self) -> list[float]:
        """When the load changes, or who bears it: after such a time a second move of a pod is no mistake."""
        times = [*self.load.starts.tolist(), *(each.at for each in (*self.rollouts, *self.broken))]
        times += [time for loss in self.losses for time in (loss.at, loss.until)]
        return sorted(times)
