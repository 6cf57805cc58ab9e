"""The scenarios of KSE's experiment, with the parameters of its published code."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise, product
from statistics import NormalDist

NODES = ("ppgcc-m02", "ppgcc-m03", "ppgcc-m04", "ppgcc-m05")
CORES = 2.0
MEMORY = 2_000_000_000
SECONDS = 720.0
FIRST_ACTION = 120.0
"""Of a balancer, in seconds of the load."""
INTERVAL = 60.0
"""Seconds between two actions of a balancer, and between two snapshots of the nodes."""
_PLACES = (3, 1, 0, 2, 3, 1, 0, 2, 1, 3, 2, 0, 0, 1, 3, 2, 1, 2, 3, 0)
"""Its fixed first placement: the node of each pod in the order in which the API lists them, over and over."""


@dataclass(frozen=True, slots=True)
class Workload:
    """What one request and one pod cost, fitted to the recorded runs of the first placement."""

    name: str
    sizes: tuple[int, int]
    cpu_seconds: float
    """Of one request."""
    overhead_seconds: float
    """Of one request, beside its CPU: the network, the database."""
    background_cores: float
    """Of each node, used by nobody who can move."""
    background_bytes: float
    pod_bytes: float
    """Of an idle pod."""
    bytes_per_rate: float
    """That a pod holds for each request per second that it gets."""
    start_seconds: float
    most_rate: float = math.inf
    """Requests per second that the database behind all pods can serve; others fail, wherever pods are."""
    ramp_seconds: float = 0.0
    """Beside the pause of 0.5 s, what a user of the ramp waits for a response."""
    listed_by_name: bool = True
    """Whether the API listed pod-10 before pod-2 when the first placement was made."""


WORKLOADS: Mapping[str, Workload] = {
    each.name: each
    for each in (
        Workload("synthetic", (20, 40), 0.099, 0.03, 0.18, 990e6, 45e6, 22e6, 1.7, ramp_seconds=0.19),
        Workload(
            "realistic",
            (10, 20),
            0.126,
            5.0,
            0.031,
            1031e6,
            60e6,
            30e6,
            1.7,
            most_rate=14.6,
            ramp_seconds=5.5,
            listed_by_name=False,
        ),
    )
}


@dataclass(frozen=True, slots=True)
class Scenario:
    workload: str
    pods: int
    target: int
    """Requests per second of the constant rate, users at the end of the ramp."""
    rate: str
    distribution: str
    metric: str
    leak: float = 0.0
    """Bytes per second that the first pod takes and keeps: one of the scenarios of KSE's future work."""

    @property
    def name(self) -> str:
        shown = f"{self.workload} {self.pods} pods {self.target} {self.rate} {self.distribution} {self.metric}"
        return f"{shown} leak" if self.leak else shown

    @property
    def unit(self) -> str:
        return "MB" if self.metric == "memory" else "millicores"

    @property
    def model(self) -> Workload:
        return WORKLOADS[self.workload]

    def apps(self) -> list[str]:
        return [f"pod-{number}" for number in range(1, self.pods + 1)]

    def placement(self) -> dict[str, str]:
        listed = sorted(self.apps(), key=lambda name: f"{name}-") if self.model.listed_by_name else self.apps()
        return {app: NODES[_PLACES[at % len(_PLACES)]] for at, app in enumerate(listed)}

    def shares(self) -> list[float]:
        """Of all requests, by app: the index of an app is drawn, rounded, and drawn again outside of 1..pods."""
        upper = [self._below(number + 0.5) for number in range(self.pods + 1)]
        parts = [high - low for low, high in pairwise(upper)]
        return [part / sum(parts) for part in parts]

    def _below(self, value: float) -> float:
        if self.distribution == "exponential":
            return 1.0 - math.exp(-5.0 / self.pods * value)
        return NormalDist(0.75 * (self.pods + 1), (self.pods + 1) / 6).cdf(value)

    def sent(self, time: float) -> float:
        """Requests per second to all pods together."""
        if self.rate == "constant":
            return float(self.target)
        return self.target * time / SECONDS / (0.5 + self.model.ramp_seconds)

    def reaches(self, time: float) -> float:
        """The part of them that the database can serve."""
        sent = self.sent(time)
        return 1.0 if sent == 0 else min(1.0, self.model.most_rate / sent)


FUTURE_WORK = (
    Scenario("synthetic", 20, 20, "constant", "normal", "memory", leak=1.5e6),
    Scenario("synthetic", 20, 60, "constant", "exponential", "cpu"),
)
"""A node that runs out of memory, and one that runs out of CPU; all nodes together have enough."""


def scenarios(workloads: Iterable[str] = tuple(WORKLOADS)) -> list[Scenario]:
    return [
        Scenario(workload, pods, target, rate, distribution, metric)
        for workload in workloads
        for pods, target, rate, distribution, metric in product(
            WORKLOADS[workload].sizes, (20, 40), ("constant", "ramp"), ("exponential", "normal"), ("memory", "cpu")
        )
    ]
