"""`python -m loadtests.tuning.speed`: how long `rematch tune` takes on a recorded month of 1,000 pods.

The month is drawn: workloads of one to seven replicas with a daily rhythm, noise and short bursts, on nodes of three
sizes. `--load` is the mean load of the nodes: near .6 some pod is unhappy a few times a day, from .75 on all the time.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reactor.cluster.records import Container, Namespace, Node, Owner, Pod, Probe, Workload
from reactor.cluster.view import ClusterView
from reactor.history.levels import Axis
from reactor.replay.candidates import DEFAULT_GRID, candidates
from reactor.replay.given import given_by
from reactor.replay.recorded import DAY, STEP, Recorded
from reactor.replay.tuning import answers_of
from reactor.settings.model import Settings
from reactor.state.calibration import PRIOR

Floats = NDArray[np.float64]
BEGIN = 20_000 * DAY
GIB = 2.0**30
PROBES = 6.0
"""Per minute."""
PODS_PER_NODE = 17
SIZES = (4.0, 8.0, 16.0)
STEPS_OF_A_BURST, BURST = 12, 1.2
BAR = 900.0


@dataclass(frozen=True, slots=True)
class Month:
    recorded: Recorded
    cluster: ClusterView


def month(days: int, pods: int, load: float, seed: int = 1) -> Month:
    source, steps = np.random.default_rng(seed), days * DAY // STEP
    cores = source.choice(SIZES, max(2, pods // PODS_PER_NODE))
    workload = np.repeat(np.arange(pods), source.integers(1, 8, pods))[:pods]
    wanted = _wanted(source, int(workload.max()) + 1, steps)
    wanted *= load * cores.sum() / wanted[workload].sum(axis=0).mean()
    on = _spread_out(source, wanted.mean(axis=1)[workload], cores)
    loads = np.stack([wanted[workload[on == node]].sum(axis=0) / size for node, size in enumerate(cores)])
    used = wanted[workload] / np.maximum(loads[on], 1.0)
    chance = 0.0005 + 0.6 / (1.0 + np.exp((1.02 - loads) / 0.03))
    failed = source.binomial(int(PROBES) * STEP // 60, chance[on]) / (STEP / 60)
    of_pods = {Axis.CPU: used, Axis.MEMORY: np.full_like(used, GIB / 5), Axis.THROTTLED: np.zeros_like(used)}
    of_pods |= {Axis.FAILURES: failed, Axis.SUCCESSES: PROBES - failed, Axis.READY: np.ones_like(used)}
    by_node = np.stack([used[on == node].sum(axis=0) for node in range(len(cores))])
    of_nodes = {Axis.CPU: by_node, Axis.MEMORY: np.full_like(by_node, GIB), Axis.READY: np.ones_like(by_node)}
    cluster = _cluster(workload, on, wanted.mean(axis=1), cores, float(BEGIN + days * DAY))
    recorded = Recorded(
        begin=BEGIN,
        nodes=tuple(cluster.nodes),
        pods=tuple(pod.key for pod in cluster.pods.values()),
        of_pods={axis: values.astype(np.float32) for axis, values in of_pods.items()},
        peaks=used.astype(np.float32),
        of_nodes={axis: values.astype(np.float32) for axis, values in of_nodes.items()},
        on=np.repeat(on[:, np.newaxis], steps, axis=1).astype(np.int32),
        events=(),
        moves=(),
        curve=PRIOR,
        notes=(),
    )
    return Month(recorded, cluster)


def _wanted(source: np.random.Generator, workloads: int, steps: int) -> Floats:
    """What one replica of each workload wants, in an arbitrary unit."""
    times = np.arange(steps) * STEP / DAY
    phase, height = source.normal(0.0, 0.12, (workloads, 1)), source.uniform(0.1, 0.5, (workloads, 1))
    noise, drawn = np.zeros((workloads, steps)), source.normal(0.0, 0.06, (workloads, steps))
    for step in range(1, steps):
        noise[:, step] = 0.95 * noise[:, step - 1] + drawn[:, step]
    begins = source.random((workloads, steps)) < 0.002 / STEPS_OF_A_BURST
    lasts = np.maximum.accumulate(np.where(begins, np.arange(steps), -STEPS_OF_A_BURST), axis=1)
    bursts = BURST * (np.arange(steps) - lasts < STEPS_OF_A_BURST)
    rhythm = np.maximum(1.0 + height * np.sin(2.0 * np.pi * (times + phase)) + noise, 0.05)
    found: Floats = source.lognormal(0.0, 0.8, (workloads, 1)) * rhythm * (1.0 + bursts)
    return found


def _spread_out(source: np.random.Generator, requests: Floats, cores: Floats) -> NDArray[np.int64]:
    """Each pod on one of the emptiest nodes, in any order."""
    on, used = np.zeros(len(requests), np.int64), np.zeros(len(cores))
    for pod in source.permutation(len(requests)).tolist():
        on[pod] = np.argmin(used / cores + 0.1 * source.random(len(cores)))
        used[on[pod]] += requests[pod]
    return on


def _cluster(
    workload: NDArray[np.int64], on: NDArray[np.int64], requests: Floats, cores: Floats, now: float
) -> ClusterView:
    names = [f"n{number}" for number in range(len(cores))]
    owners = [Owner("ReplicaSet", f"w{number}-1a2b", f"owner-{number}") for number in range(len(requests))]
    pods = [
        _pod(f"{owners[of].name}-{number}", names[node], owners[of], float(requests[of]))
        for number, (of, node) in enumerate(zip(workload.tolist(), on.tolist(), strict=True))
    ]
    replicas = np.bincount(workload).tolist()
    workloads = [
        Workload(owner.kind, owner.uid, "shop", owner.name, resource_version="", replicas=number)
        for owner, number in zip(owners, replicas, strict=True)
    ]
    return ClusterView(
        at=now,
        nodes={name: _node(name, size) for name, size in zip(names, cores.tolist(), strict=True)},
        pods={pod.uid: pod for pod in pods},
        workloads={each.uid: each for each in workloads},
        namespaces={"shop": Namespace("shop", uid="shop", resource_version="")},
    )


def _pod(name: str, node: str, owner: Owner, cores: float) -> Pod:
    app = owner.name.rpartition("-")[0]
    return Pod(
        uid=f"uid-{name}",
        namespace="shop",
        name=name,
        resource_version="",
        labels={"app": app, "pod-template-hash": "1a2b"},
        annotations={},
        created=float(BEGIN),
        scheduler_name="rematch",
        node=node,
        owner=owner,
        phase="Running",
        ready=True,
        requests={"cpu": cores, "memory": GIB / 5},
        containers=(Container("srv", Probe(period=60.0 / PROBES), 0, float(BEGIN)),),
        ready_since=float(BEGIN),
    )


def _node(name: str, cores: float) -> Node:
    allocatable = {"cpu": cores, "memory": 64 * GIB, "pods": 110.0}
    labels = {"kubernetes.io/hostname": name}
    return Node(name, f"uid-{name}", "", labels, allocatable=allocatable, capacity=allocatable, ready=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--days", type=int, default=30)
    parser.add_argument("--pods", type=int, default=1000)
    parser.add_argument("--load", type=float, default=0.62)
    parser.add_argument("--settings", type=int, default=24, help="the first ones of the default grid")
    parser.add_argument("--jobs", type=int, default=2)
    wanted = parser.parse_args()
    drawn = month(wanted.days, wanted.pods, wanted.load)
    tried = candidates(Settings.model_validate({"mode": "act"}), DEFAULT_GRID)[: wanted.settings]
    began, used = time.monotonic(), _cpu()
    _, answers = answers_of(drawn.recorded, given_by(drawn.recorded, drawn.cluster), tried, wanted.jobs)
    seconds = time.monotonic() - began
    moves, unhappy = answers[0].moves, answers[0].unhappy
    print(
        f"{len(tried)} settings, {wanted.days} days, {wanted.pods} pods: {seconds:.0f} s, {_cpu() - used:.0f} s of CPU"
    )
    print(f"with the settings in force {moves:.1f} moves and {unhappy:.0f} unhappy pod-minutes a day; bar {BAR:.0f} s")
    return 0 if seconds <= BAR else 1


def _cpu() -> float:
    """Of this process and of those that have ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


if __name__ == "__main__":
    sys.exit(main())
