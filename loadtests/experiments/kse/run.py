"""One arm on one scenario: the tournament's model of a cluster, loaded as KSE's k6 scripts load it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from loadtests.experiments.kse.arms import ARMS, simulated_settings
from loadtests.experiments.kse.design import CORES, FIRST_ACTION, INTERVAL, MEMORY, NODES, SECONDS, Scenario
from loadtests.experiments.kse.results import Run, count_returns, imbalance_of
from loadtests.tournament.cluster import FluidCluster
from loadtests.tournament.instance import AppModel, Instance, LoadPlan, NodeModel
from loadtests.tournament.policies import Controlled
from loadtests.tournament.queues import Floats
from loadtests.tournament.scenario import Probes
from loadtests.tournament.scenario import Scenario as ModelScenario
from loadtests.workloads.placement import NodeSpec
from reactor.signals.measurements import MetricsSource
from storage.store import Store

STEP = 5.0
"""Seconds in which the rates are constant: the requests of a step are drawn as a whole."""
_GROWS, _SHRINKS = 45.0, 300.0
"""Seconds in which memory follows the load up and, because allocators keep it, down."""
_CPU_NOISE = 0.1
_MEMORY_NOISE = 30e6
"""Of the background of a node, at most."""
_WORKERS = 2
"""Requests that a pod works on at the same time: its recorded latency is that of two cores."""
_HEAP_NOISE = 0.25
"""Relative spread of what a pod holds under the same load."""


def instance_of(scenario: Scenario, seed: int) -> Instance:
    """The same for every arm."""
    draw = np.random.default_rng((seed, *scenario.name.encode()))
    model, placement = scenario.model, scenario.placement()
    starts = np.arange(0.0, SECONDS, STEP)
    arrivals = _arrivals(scenario, draw, starts)
    rates = arrivals.mean(axis=0).clip(min=1e-9)
    apps = [
        AppModel(
            name=app,
            replicas=1,
            work=model.cpu_seconds,
            rate=float(rate),
            cpu_request=0.02,
            memory_request=model.pod_bytes,
            memory=model.pod_bytes,
            start_seconds=model.start_seconds,
            workers=_WORKERS,
            leak=scenario.leak if app == scenario.apps()[0] else 0.0,
        )
        for app, rate in zip(scenario.apps(), rates, strict=True)
    ]
    system = [
        AppModel(
            name=f"system-{node}",
            replicas=1,
            work=0.0,
            rate=model.background_cores,
            cpu_request=0.1,
            memory_request=200e6,
            memory=model.background_bytes + float(draw.uniform(-_MEMORY_NOISE, _MEMORY_NOISE)) / 2,
            pinned=node,
        )
        for node in NODES
    ]
    background = draw.normal(1.0, _CPU_NOISE, (len(starts), len(NODES))).clip(0.5, 1.5)
    nodes = tuple(NodeModel(NodeSpec(name, CORES, MEMORY)) for name in NODES)
    shown = ModelScenario(scenario.name, "", SECONDS, (), (), 0.5, probes=Probes(readiness_period=1.0))
    return Instance(
        scenario=shown,
        seed=seed,
        nodes=nodes,
        apps=(*apps, *system),
        load=LoadPlan(starts, np.hstack((arrivals / rates, background))),
        placement={app: (node,) for app, node in placement.items()} | {each.name: (each.pinned,) for each in system},
    )


def _arrivals(scenario: Scenario, draw: np.random.Generator, starts: Floats) -> Floats:
    """(steps, apps): requests per second."""
    shares = scenario.shares()
    rows = []
    for start in starts.tolist():
        middle = start + STEP / 2
        number = scenario.sent(middle) * scenario.reaches(middle) * STEP
        rows.append(draw.multinomial(int(number) + int(draw.random() < number % 1), shares) / STEP)
    return np.array(rows, dtype=np.float64)


async def run(scenario: Scenario, arm: str, seed: int, store: Store) -> Run:
    instance = instance_of(scenario, seed)
    settings = ARMS[arm].settings
    cluster = FluidCluster(instance, binds=settings is None)
    memory = _Memory(cluster, scenario, seed)
    seen = _Seen(cluster, scenario)
    actor = None
    while cluster.clock.time < SECONDS - 1e-9:
        due = min((int(cluster.clock.time / STEP + 1e-9) + 1) * STEP, SECONDS)
        while cluster.clock.time < due - 1e-9:
            cluster.advance(due)
            if actor is not None:
                await actor.act()
        memory.follow()
        seen.sample()
        if actor is None and settings is not None and cluster.clock.time >= FIRST_ACTION - INTERVAL - 1e-9:
            chosen = simulated_settings(settings, scenario.metric)
            actor = Controlled(cluster, chosen, store, MetricsSource.METRICS_API)
    return seen.result(arm, seed)


class _Memory:
    """What pods hold follows the load: up in less than a minute, down slowly."""

    def __init__(self, cluster: FluidCluster, scenario: Scenario, seed: int) -> None:
        self._cluster, self._model = cluster, scenario.model
        draw = np.random.default_rng((seed, 7))
        self._factor = draw.normal(1.0, _HEAP_NOISE, len(cluster.apps)).clip(0.3, 2.0)

    def follow(self) -> None:
        slots, model = self._cluster.slots, self._model
        for pod in self._cluster.running():
            slot = pod.slot
            held = model.bytes_per_rate * slots.rate[slot] * self._factor[slots.app[slot]]
            missing = model.pod_bytes + held - slots.memory[slot]
            slots.memory[slot] += missing * min(1.0, STEP / (_GROWS if missing > 0 else _SHRINKS))


class _Seen:
    """Per node and snapshot the mean of a minute, as metrics-server shows it."""

    def __init__(self, cluster: FluidCluster, scenario: Scenario) -> None:
        self._cluster, self._scenario = cluster, scenario
        self._minute: list[Floats] = []
        self._nodes: list[list[float]] = []
        self._latency: list[tuple[float, float]] = []

    def sample(self) -> None:
        cluster = self._cluster
        self._minute.append(self._memory() if self._scenario.metric == "memory" else self._cpu())
        if len(self._minute) * STEP >= INTERVAL:
            self._nodes.append(np.mean(self._minute, axis=0).round(2).tolist())
            self._minute = []
        slots, model = cluster.slots, self._scenario.model
        for slot in np.flatnonzero(slots.routed & slots.listens).tolist():
            busy = min(slots.rate[slot] * model.cpu_seconds / _WORKERS, 0.95)
            stretch = 1.0 + busy**2 / (1 - busy**2) + max(0.0, float(slots.wait[slot])) / model.cpu_seconds
            held_back = max(1.0, float(slots.wanted[slot]) / max(float(slots.share[slot]), 1e-9))
            latency = float(model.overhead_seconds + model.cpu_seconds * stretch * held_back)
            self._latency.append((latency * 1000, float(slots.rate[slot])))

    def _cpu(self) -> Floats:
        used = np.zeros(len(NODES))
        slots = self._cluster.slots
        here = slots.listens & (slots.node >= 0)
        np.add.at(used, slots.node[here], slots.share[here] * 1000)
        return used

    def _memory(self) -> Floats:
        used = np.zeros(len(NODES))
        for pod in self._cluster.pods.values():
            if pod.node is not None and self._cluster.slots.listens[pod.slot]:
                used[self._cluster.nodes[pod.node].index] += self._cluster.memory_of(pod) / 1e6
        return used

    def result(self, arm: str, seed: int) -> Run:
        cluster, scenario = self._cluster, self._scenario
        last = cluster.samples[-1]
        apps = slice(0, scenario.pods)
        sent, answered = float(last.sent[apps].sum()), float(last.answered[apps].sum())
        reached = float(np.mean([scenario.reaches(at) * scenario.sent(at) for at in np.arange(2.5, SECONDS, STEP)]))
        wanted = float(np.mean([scenario.sent(at) for at in np.arange(2.5, SECONDS, STEP)]))
        snapshots = self._nodes[:-1]
        return Run(
            scenario=scenario.name,
            arm=arm,
            seed=seed,
            imbalance=round(imbalance_of(snapshots), 3),
            node_mean=round(float(np.mean(snapshots)), 2),
            moves=len(cluster.moves),
            returns=count_returns((move.lineage, move.source, move.target) for move in cluster.moves),
            availability=round(100 * min(1.0, answered / max(sent, 1e-9)) * reached / wanted, 4),
            p95_ms=round(_quantile(self._latency, 0.95), 1),
            restarts=cluster.restarts,
            trace=self._nodes,
        )


def _quantile(weighted: Sequence[tuple[float, float]], share: float) -> float:
    ordered = sorted(weighted)
    total = sum(weight for _, weight in ordered)
    sofar = 0.0
    for value, weight in ordered:
        sofar += weight
        if sofar >= share * total:
            return value
    return 0.0
