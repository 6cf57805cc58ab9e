"""Rematch and descheduler 0.36 on the same crowded cluster, one after the other.

    python -m loadtests.benchmarks.cluster_side_by_side [--pods 5000] [--nodes 200] [--only NAME ...] [--into FILE]

All pods are on half of the nodes. The clock starts with the process and the imbalance is read from the API server's
watch. Our pods carry our scheduler's name, those of the descheduler's run are bound by kube-scheduler.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import msgspec

from loadtests.benchmarks.cluster_contenders import NAMES, REMATCH, Contender, contender
from loadtests.benchmarks.cluster_setup import (
    BenchCluster,
    Moment,
    bench_cluster,
    reached,
    spread_of,
    thinned,
    timed_progress,
)
from loadtests.benchmarks.process import Cost, process_use, run_to_its_end
from loadtests.controlplane import Component
from loadtests.kwok import Fleet, PodChange
from loadtests.tools.processes import Progress
from reactor.clock import SystemClock

CYCLE_DEADLINE = 600.0
SETTLE_DEADLINE = 120.0
REPLICAS = 10
COURSE_STEP = 1.0


@dataclass(frozen=True, slots=True)
class Contest:
    contender: str
    pods: int
    nodes: int
    load_average: tuple[float, float]
    """Of the machine's last minute, at the start and at the end."""
    cycles: int
    seconds: float
    """From the start until nothing moves any more."""
    evictions: int
    before: float
    after: float
    """Imbalance."""
    fullest: int
    emptiest: int
    cpu_seconds: float
    scheduler_cpu_seconds: float
    """Of kube-scheduler meanwhile: it binds for the descheduler."""
    peak_mib: float
    course: tuple[Moment, ...]

    @property
    def moves_per_unit(self) -> float:
        removed = self.before - self.after
        return self.evictions / removed if removed else float("inf")


class ImbalanceRecorder:
    """Counts evictions and keeps the imbalance after every change."""

    def __init__(self, cluster: BenchCluster) -> None:
        self._stage = cluster
        self._began = time.monotonic()
        self.evictions = 0
        self.course: list[Moment] = []
        self.last_change = self._began

    def see(self, change: PodChange) -> None:
        self.evictions += change.evicted is not None
        if change.evicted is not None or change.bound is not None:
            self.last_change = change.at
            imbalance = spread_of(self._stage.observer.on_node, self._stage.fleet.node_names, self._stage.fleet.pods)
            self.course.append(Moment(change.at - self._began, imbalance.imbalance))

    @property
    def seconds(self) -> float:
        return self.last_change - self._began


async def contend(contender: Contender, cluster: BenchCluster, progress: Progress) -> Contest:
    fleet, observer = cluster.fleet, cluster.observer
    before = spread_of(observer.on_node, fleet.node_names, fleet.pods)
    load, scheduler = os.getloadavg()[0], cluster.pid(Component.SCHEDULER)
    scheduled = process_use(scheduler).cpu_seconds
    recorder = ImbalanceRecorder(cluster)
    silence = observer.listen(recorder.see)
    costs: list[Cost] = []
    for _ in range(contender.most_cycles):
        moved = recorder.evictions
        costs.append(await run_to_its_end(contender.command, cluster.folder / f"{contender.name}.log", CYCLE_DEADLINE))
        await observer.until(lambda: observer.running == fleet.pods, SETTLE_DEADLINE)
        progress(f"{contender.name}: {recorder.evictions - moved} evictions in cycle {len(costs)}")
        if recorder.evictions == moved:
            break
    silence()
    after = spread_of(observer.on_node, fleet.node_names, fleet.pods)
    return Contest(
        contender=contender.name,
        pods=fleet.pods,
        nodes=fleet.nodes,
        load_average=(load, os.getloadavg()[0]),
        cycles=len(costs),
        seconds=recorder.seconds,
        evictions=recorder.evictions,
        before=before.imbalance,
        after=after.imbalance,
        fullest=after.fullest,
        emptiest=after.emptiest,
        cpu_seconds=sum(cost.cpu_seconds for cost in costs),
        scheduler_cpu_seconds=process_use(scheduler).cpu_seconds - scheduled,
        peak_mib=max(cost.peak_mib for cost in costs),
        course=tuple(thinned(recorder.course, COURSE_STEP)),
    )


async def measure(name: str, pods: int, nodes: int, progress: Progress) -> Contest:
    """Each on a control plane of its own, fresh from the same objects."""
    with tempfile.TemporaryDirectory(prefix="rematch-side-") as made:
        folder = Path(made)
        scheduler = "rematch" if name == REMATCH else "default-scheduler"
        fleet = Fleet(nodes, crowded=nodes // 2, apps=pods // REPLICAS, replicas=REPLICAS, scheduler=scheduler)
        async with bench_cluster(folder, fleet, progress) as cluster:
            await SystemClock().sleep(2.0)
            return await contend(await contender(name, folder, cluster.plane.kubeconfig), cluster, progress)


def table(runs: list[Contest]) -> str:
    lines = [
        f"{'':<22} {'s':>7} {'evictions':>9} {'imbalance':>15} {'per unit':>8} {'fullest':>7} {'emptiest':>8}"
        f" {'CPU s':>6} {'MiB':>5}  load"
    ]
    lines += [
        f"{run.contender:<22} {run.seconds:>7.1f} {run.evictions:>9} {run.before:>6.0f} -> {run.after:>5.0f}"
        f" {run.moves_per_unit:>8.2f} {run.fullest:>7} {run.emptiest:>8} {run.cpu_seconds:>6.1f} {run.peak_mib:>5.0f}"
        f"  {run.load_average[0]:.1f}-{run.load_average[1]:.1f}"
        for run in runs
    ]
    return "\n".join(lines)


def verdicts(runs: list[Contest]) -> list[str]:
    """When ours was where each of the others ended."""
    ours = next((run for run in runs if run.contender == REMATCH), None)
    return [verdict(run, ours) for run in runs if ours is not None and run is not ours]


def verdict(peer: Contest, ours: Contest) -> str:
    there, theirs = reached(ours.course, peer.after), reached(peer.course, peer.after) or peer.seconds
    if there is None:
        return f"rematch did not reach the {peer.after:.0f} of {peer.contender}"
    return (
        f"imbalance {peer.after:.0f}: {peer.contender} after {theirs:.1f} s, rematch after {there:.1f} s"
        f" ({theirs / there:.1f} x sooner)"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pods", type=int, default=5000)
    parser.add_argument("--nodes", type=int, default=200)
    parser.add_argument("--only", choices=NAMES, action="append")
    parser.add_argument("--into", type=Path, help="JSON file for the results")
    wanted = parser.parse_args()
    progress = timed_progress()
    names = wanted.only or NAMES
    runs = [asyncio.run(measure(name, wanted.pods, wanted.nodes, progress)) for name in names]
    print(table(runs))
    print("\n".join(verdicts(runs)))
    if wanted.into:
        wanted.into.write_bytes(msgspec.json.encode(runs))
    return 0


if __name__ == "__main__":
    sys.exit(main())
