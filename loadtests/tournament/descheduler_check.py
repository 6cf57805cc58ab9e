"""Is the model of descheduler right? One pass of the program on the state in which the model evicts first.

    python -m loadtests.tournament.descheduler_check

The state of a game goes to a real control plane: KWOK plays its nodes and pods, metrics.k8s.io says what they use. It
is compared which pods each evicts. Of pods of equal priority the program takes any, so numbers and cores count, not
names.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from loadtests.controlplane import ControlPlaneOptions, control_plane, serve_metrics
from loadtests.embedded.metrics_api import NodeMetrics, PodMetrics
from loadtests.kwok import NAMESPACE, PLANE_FLAGS, fake_node, kwok, nodes_open
from loadtests.tools import ensure
from loadtests.tools.descheduler import one_pass, policy_with
from loadtests.tools.processes import run
from loadtests.tournament.cluster import FluidCluster
from loadtests.tournament.descheduler import FITTING, Descheduler
from loadtests.tournament.drawing import draw
from loadtests.tournament.run import start
from loadtests.tournament.scenario import scenarios
from loadtests.tournament.state import FluidPod
from loadtests.workloads.api import LabApi
from loadtests.workloads.placement import NodeSpec
from reactor.clock import SystemClock
from reactor.cluster.writes import gather_limited

SCENARIOS = ("spike", "noisy-neighbour", "hungrier-version")
SEEDS = range(1, 31)
STATES = 5
"""Of each scenario."""
INTERVAL = 60.0
_PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
_NODES = "/api/v1/nodes"
_AT_ONCE = 8
_DEADLINE = 120.0
_POLL = 0.3


@dataclass(frozen=True, slots=True)
class FirstEvictions:
    scenario: str
    seed: int
    cluster: FluidCluster
    model: Descheduler
    chosen: Sequence[FluidPod]


@dataclass(frozen=True, slots=True)
class Compared:
    scenario: str
    seed: int
    model: Counter[str]
    program: Counter[str]
    """Evicted pods by node."""
    model_cores: float
    program_cores: float


async def first_evictions(scenario: str, seed: int) -> FirstEvictions | None:
    """None when the model evicts nobody in this game."""
    cluster = start(draw(scenarios([scenario])[0], seed))
    model = Descheduler(cluster, FITTING, interval=float("inf"))
    due = INTERVAL
    while cluster.clock.time < cluster.instance.seconds:
        cluster.advance(due)
        await model.act()
        if cluster.clock.time >= due:
            due += INTERVAL
            chosen = model.low_node_utilization()
            if chosen:
                return FirstEvictions(scenario, seed, cluster, model, chosen)
    return None


class ModelMetrics:
    """What the model measured last, as metrics-server tells it."""

    def __init__(self, state: FirstEvictions) -> None:
        self._state = state

    def node_usage(self) -> Iterable[NodeMetrics]:
        for name in self._state.cluster.nodes:
            pods = [pod for pod in self._state.cluster.pods.values() if pod.node == name]
            cores, memory = sum(map(self._state.model.cores, pods)), sum(map(self._state.cluster.memory_of, pods))
            yield NodeMetrics(name, cores, memory, SystemClock().now())

    def pod_usage(self) -> Iterable[PodMetrics]:
        for pod in _running(self._state.cluster):
            used = ("web", self._state.model.cores(pod), self._state.cluster.memory_of(pod))
            yield PodMetrics(NAMESPACE, pod.uid, (used,), SystemClock().now())


def _running(cluster: FluidCluster) -> list[FluidPod]:
    return [pod for pod in cluster.pods.values() if pod.node is not None and not pod.deleting]


async def evicted_by_program(state: FirstEvictions, folder: Path) -> list[FluidPod]:
    """The UIDs of the model are the names of the real pods."""
    programs = await ensure(["descheduler"])
    options = ControlPlaneOptions(folder / "plane", flags=PLANE_FLAGS)
    async with AsyncExitStack() as stack:
        plane = await stack.enter_async_context(control_plane(options))
        await stack.enter_async_context(kwok(plane))
        api = plane.client()
        stack.push_async_callback(api.close)
        await _create(api, state.cluster)
        await stack.enter_async_context(serve_metrics(plane, ModelMetrics(state)))
        command = one_pass(programs["descheduler"], plane.kubeconfig, folder / "policy.yaml", _policy())
        await run(command, deadline=_DEADLINE)
        left = {pod["metadata"]["name"] for pod in await _pods(api) if "deletionTimestamp" not in pod["metadata"]}
    return [pod for pod in _running(state.cluster) if pod.uid not in left]


async def _create(api: LabApi, cluster: FluidCluster) -> None:
    nodes = [_node(name, node.model.spec) for name, node in cluster.nodes.items()]
    await gather_limited([partial(api.create, _NODES, node) for node in nodes], _AT_ONCE)
    async with asyncio.timeout(_DEADLINE):
        await nodes_open(api)
        running = _running(cluster)
        await gather_limited([partial(api.create, _PODS, _pod(pod)) for pod in running], _AT_ONCE)
        while sum(pod["status"].get("phase") == "Running" for pod in await _pods(api)) < len(running):
            await asyncio.sleep(_POLL)


async def _pods(api: LabApi) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await api.get(_PODS))["items"]
    return found


def _node(name: str, spec: NodeSpec) -> dict[str, Any]:
    resources = {
        "cpu": f"{round(spec.cores * 1000)}m",
        "memory": str(int(spec.memory_bytes)),
        "pods": str(spec.max_pods),
    }
    return fake_node(name, resources)


def _pod(pod: FluidPod) -> dict[str, Any]:
    """Its owner has a kind that nobody knows: no controller cares. A neighbour has none, so it is not evicted."""
    owner = {"apiVersion": "tournament.rematch.io/v1", "kind": "App", "name": pod.app.name, "uid": pod.app.name}
    requests = {"cpu": f"{round(pod.app.cpu_request * 1000)}m", "memory": str(int(pod.app.memory_request))}
    return {
        "metadata": {"name": pod.uid, "ownerReferences": [] if pod.app.pinned else [{**owner, "controller": True}]},
        "spec": {
            "nodeName": pod.node,
            "automountServiceAccountToken": False,
            "containers": [{"name": "web", "image": "none", "resources": {"requests": requests}}],
        },
    }


def _policy() -> dict[str, Any]:
    low, high = (dict.fromkeys(("cpu", "memory", "pods"), round(100 * share)) for share in (FITTING.low, FITTING.high))
    source = {"source": "KubernetesMetrics"}
    arguments = {"metricsUtilization": source, "thresholds": low, "targetThresholds": high}
    return {**policy_with("LowNodeUtilization", arguments, "balance"), "metricsProviders": [source]}


async def compare(state: FirstEvictions) -> Compared:
    with tempfile.TemporaryDirectory(prefix="rematch-descheduler-") as folder:
        evicted = await evicted_by_program(state, Path(folder))
    return Compared(
        state.scenario,
        state.seed,
        Counter(pod.node or "" for pod in state.chosen),
        Counter(pod.node or "" for pod in evicted),
        sum(map(state.model.cores, state.chosen)),
        sum(map(state.model.cores, evicted)),
    )


async def main() -> None:
    print(f"{'scenario':18} seed  pods: model program  cores: model program  nodes: model / program")
    for scenario in SCENARIOS:
        done = 0
        for seed in SEEDS:
            state = await first_evictions(scenario, seed) if done < STATES else None
            if state is None:
                continue
            done += 1
            print(_line(await compare(state)), flush=True)


def _line(found: Compared) -> str:
    numbers = (
        f"{found.model.total():11} {found.program.total():7}  {found.model_cores:12.2f} {found.program_cores:7.2f}"
    )
    return f"{found.scenario:18} {found.seed:4}  {numbers}  {dict(found.model)} / {dict(found.program)}"


if __name__ == "__main__":
    asyncio.run(main())
