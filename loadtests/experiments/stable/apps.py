"""The fifteen apps of a seed: how much work each does per request.

All ask for the same resources, so where the scheduler puts them does not depend on their work, and is asked first. The
amounts of work are the same for every seed; which app has which is drawn. Only draws are taken in which the default
placement overruns the weak node while the cluster as a whole has room: it is then that placement matters. That is our
choice: the paper does not say how its apps were chosen, only that its weak node was overrun. Nothing is chosen by what
Rematch makes of it.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from loadtests.experiments.stable.design import Design
from loadtests.workloads.placement import App, NodeSpec, Placement, default_placement

NAMESPACE = "shop"
REQUESTS = {"cpu": "15m", "memory": "32Mi"}
"""Equal for all and far too low, so that a scheduler that believes them sees no difference between the apps."""
WORK_MS = (2.0, 32.0)
OVERRUN = (1.5, 1.75)
"""Load of the weak node in the default placement, in units of the whole cluster's load: with it the node is full from
the steps 70 to 80 on. In the paper the first rematch came at 80."""
_DRAWS = 20_000


def app_names(design: Design) -> tuple[str, ...]:
    return tuple(f"app-{number + 1:02}" for number in range(design.apps))


def draw_apps(design: Design, seed: int, default: Placement) -> tuple[App, ...]:
    """In the order of deployment; a seed and a default placement always give the same apps."""
    source = random.Random(f"stable-experiment/{seed}")
    low, high = WORK_MS
    works = [low + (high - low) * index / (design.apps - 1) for index in range(design.apps)]
    weak = min(design.nodes, key=lambda node: node.cores)
    for _ in range(_DRAWS):
        source.shuffle(works)
        apps = tuple(App(name, round(work, 2)) for name, work in zip(app_names(design), works, strict=True))
        loads = relative_loads(design.nodes, apps, default)
        if OVERRUN[0] <= loads[weak.name] <= OVERRUN[1] and max(loads, key=lambda name: loads[name]) == weak.name:
            return apps
    raise ValueError(f"no draw of seed {seed} overruns {weak.name} as wanted")


def relative_loads(nodes: Sequence[NodeSpec], apps: Sequence[App], placement: Placement) -> dict[str, float]:
    """By node: the share of the work that is there over the share of the cores that are there."""
    work, cores = sum(app.work_ms for app in apps), sum(node.cores for node in nodes)
    here = {node.name: sum(app.work_ms for app in apps if placement.get(app.name) == node.name) for node in nodes}
    return {node.name: (here[node.name] / work) / (node.cores / cores) for node in nodes}


def expected_placement(design: Design, seed: int) -> Placement:
    """By kube-scheduler's default scores, as the embedded cluster has them; the seed breaks ties."""
    spec = {"containers": [{"name": "web", "resources": {"requests": dict(REQUESTS)}}]}
    nodes = default_placement(design.nodes, [spec] * design.apps, random.Random(seed))
    return dict(zip(app_names(design), nodes, strict=True))
