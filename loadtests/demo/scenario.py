"""The scenario of the demo: STABLE's three workers and 15 web apps whose requests say nothing about their needs.

All apps ask for the same little CPU and memory, so a scheduler that believes requests fills the nodes by size alone.
What an app really needs is drawn by the seed. Only draws are taken that show the case in question: enough room in the
cluster as a whole, but the weak worker overrun by the placement that kube-scheduler's default scores give.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from loadtests.workloads.app_spec import AppSpec
from loadtests.workloads.load_generator import AppLoad, Arrival, LoadPlan, RateStep
from loadtests.workloads.placement import NodeSpec, default_placement

Json = dict[str, Any]
_GB = 10**9
NAMESPACE = "shop"
WORKERS = (
    NodeSpec("worker-1", 12, 12 * _GB),
    NodeSpec("worker-2", 5, 8 * _GB),
    NodeSpec("worker-3", 8, 16 * _GB),
)
WEAK = "worker-2"
REQUESTS = {"cpu": "500m", "memory": "256Mi"}
"""Equal for all, and such that the same three apps land on the weak worker however ties are broken."""


@dataclass(frozen=True, slots=True)
class WebAppSpec:
    name: str
    spec: AppSpec
    rate: float
    """Requests per second at full load."""

    @property
    def need(self) -> float:
        """Cores at full load."""
        return self.rate * self.spec.work_ms / 1000


@dataclass(frozen=True, slots=True)
class Scenario:
    seed: int
    duration: float
    nodes: tuple[NodeSpec, ...]
    apps: tuple[WebAppSpec, ...]
    """In the order in which they are deployed."""
    expected: tuple[str, ...]
    """The node that the default scores give each app."""
    steps: tuple[tuple[float, float], ...] = ((0.0, 0.4), (0.1, 0.7), (0.2, 1.0))
    """(share of the duration, share of the full rate): the load rises in three steps."""
    namespace: str = NAMESPACE

    def load_plan(self, arrival: Arrival = Arrival.POISSON) -> LoadPlan:
        loads = tuple(
            AppLoad(app.name, tuple(RateStep(at * self.duration, share * app.rate) for at, share in self.steps))
            for app in self.apps
        )
        return LoadPlan(loads, self.seed, self.duration, arrival)

    def node_manifests(self) -> list[Json]:
        return [node.manifest() for node in self.nodes]

    def deployments(self, scheduler_name: str, port: int = 8080) -> list[Json]:
        return [_deployment(app, self.namespace, _pod_spec(scheduler_name, port)) for app in self.apps]

    def node_load(self) -> dict[str, float]:
        """Need at full load as a share of each node's cores, as expected."""
        needs = _needs(self.apps, self.expected)
        return {node.name: needs.get(node.name, 0.0) / node.cores for node in self.nodes}


@dataclass(frozen=True, slots=True)
class Shape:
    """What a draw must look like to be taken."""

    apps: int = 15
    work_ms: tuple[float, float] = (10.0, 150.0)
    total: tuple[float, float] = (0.70, 0.78)
    """Need of all apps as a share of all cores."""
    weak: tuple[float, float] = (1.25, 1.5)
    """Need on the weak worker as a share of its cores."""
    others: float = 0.85
    """Most of any other worker."""
    draws: int = 20_000
    """Then it is given up; about one in five hundred has the default shape."""


def stable_scenario(seed: int, duration: float, shape: Shape | None = None) -> Scenario:
    """The first draw of this seed that has the shape; a seed always gives the same scenario."""
    shape = shape or Shape()
    source = random.Random(f"stable/{seed}")
    expected = default_placement(WORKERS, [_pod_spec("", 8080)] * shape.apps)
    for _ in range(shape.draws):
        scenario = Scenario(seed, duration, WORKERS, _draw(source, shape), expected)
        loads = scenario.node_load()
        weak = loads.pop(WEAK)
        if shape.weak[0] <= weak <= shape.weak[1] and max(loads.values()) <= shape.others:
            return scenario
    raise ValueError(f"no draw of seed {seed} has the wanted shape: {shape} with {expected.count(WEAK)} apps on {WEAK}")


def _draw(source: random.Random, shape: Shape) -> tuple[WebAppSpec, ...]:
    low, high = shape.work_ms
    works = [low + (high - low) * index / (shape.apps - 1) for index in range(shape.apps)]
    works = [min(max(work * source.uniform(0.9, 1.1), low), high) for work in works]
    source.shuffle(works)
    shares = [source.uniform(0.8, 1.2) for _ in works]
    total = source.uniform(*shape.total) * sum(node.cores for node in WORKERS)
    scale = total / sum(share * work / 1000 for share, work in zip(shares, works, strict=True))
    return tuple(
        WebAppSpec(f"app-{index + 1:02}", AppSpec(work_ms=round(work, 1)), round(share * scale, 3))
        for index, (share, work) in enumerate(zip(shares, works, strict=True))
    )


def _needs(apps: tuple[WebAppSpec, ...], nodes: tuple[str, ...]) -> Mapping[str, float]:
    needs: dict[str, float] = {}
    for app, node in zip(apps, nodes, strict=True):
        needs[node] = needs.get(node, 0.0) + app.need
    return needs


def _deployment(app: WebAppSpec, namespace: str, pod_spec: Json) -> Json:
    labels = {"app": app.name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": app.name, "namespace": namespace, "labels": labels},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels, "annotations": app.spec.annotations()},
                "spec": pod_spec,
            },
        },
    }


def _pod_spec(scheduler_name: str, port: int) -> Json:
    return {
        "schedulerName": scheduler_name,
        "terminationGracePeriodSeconds": 2,
        "containers": [
            {
                "name": "web",
                "image": "lab.local/web:1",
                "ports": [{"name": "http", "containerPort": port}],
                "resources": {"requests": dict(REQUESTS)},
                "livenessProbe": _probe("/healthz", period=2) | {"initialDelaySeconds": 1},
                "readinessProbe": _probe("/readyz", period=1),
            }
        ],
    }


def _probe(path: str, period: int) -> Json:
    return {
        "httpGet": {"path": path, "port": "http"},
        "periodSeconds": period,
        "timeoutSeconds": 1,
        "failureThreshold": 3,
    }
