"""The controller on a large cluster with a real control plane: sync, memory, and from the event to the move.

    python -m loadtests.benchmarks.cluster_scale [--nodes 1000] [--pods 20000] [--moves 50] [--scope NAME] [--into FILE]

`rematch run` is a process of its own. The clock starts before the Unhealthy event is sent to the API server and stops
when the API server's watches show the first write of the move (its journal entry), the pod as deleted (so the eviction
request was a little earlier) and the replacement as bound.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import aiohttp
import msgspec
import yaml

from loadtests.benchmarks.cluster_setup import BenchCluster, FakeUsage, bench_cluster, timed_progress
from loadtests.benchmarks.fake_pods import unhealthy_event
from loadtests.benchmarks.process import ProcessUse, process_use
from loadtests.controlplane import serve_metrics
from loadtests.demo.controller import ControllerSpec, RunningController, running_controller
from loadtests.embedded.resources import Json
from loadtests.kwok import NAMESPACE, Fleet, PodChange
from loadtests.tools.ports import free_port
from loadtests.tools.processes import Progress
from loadtests.workloads.api import Changed, LabApi, Listed
from loadtests.workloads.samples import percentile
from reactor.clock import SystemClock
from reactor.cluster.records import Pod
from reactor.execution.cluster_journal import API_VERSION

BAR_SECONDS = 0.3
"""Event -> first write, p95."""
MOVES = f"/apis/{API_VERSION}/moves"
REPLICAS = 10
MOVE_DEADLINE = 60.0
SYNC_DEADLINE = 300.0
READY_DEADLINE = 90.0
BETWEEN_MOVES = 0.5
LIMITED = ("cluster", "namespace", "workload")
SCOPES = ("unhappy", "cluster")
READY = ('rematch_metrics_source_up{source="metrics.k8s.io"} 1.0', "rematch_journal_ok 1.0")
"""Lines of /metrics: the first round of metrics is in, and the controller leads and may act."""


@dataclass(frozen=True, slots=True)
class Reaction:
    written: float
    evicted: float
    bound: float


@dataclass(frozen=True, slots=True)
class ScaleResult:
    nodes: int
    pods: int
    scope: str
    load_average: tuple[float, float]
    filled_seconds: float
    synced_seconds: float
    """From the start of the process until /readyz says yes."""
    synced: ProcessUse
    ended: ProcessUse
    reactions: tuple[Reaction, ...]
    missed: int
    """Events that no move followed within the deadline."""

    @property
    def within_bar(self) -> bool:
        """An event without a move was not answered in time either."""
        return bool(self.reactions) and not self.missed and self.seconds("written", 0.95) < BAR_SECONDS

    def seconds(self, part: str, share: float) -> float:
        return percentile(sorted(getattr(each, part) for each in self.reactions), share)


async def measure(fleet: Fleet, moves: int, scopes: Sequence[str], progress: Progress) -> list[ScaleResult]:
    """One controller after the other on the same cluster, each with crowded nodes of its own."""
    with tempfile.TemporaryDirectory(prefix="rematch-scale-") as made:
        async with bench_cluster(Path(made), fleet, progress) as cluster:
            usage = FakeUsage(fleet, cluster.observer, SystemClock())
            crowded = usage.crowded_nodes
            async with serve_metrics(cluster.plane, usage):
                return [
                    await _with_controller(cluster, scope, crowded[at * moves : (at + 1) * moves], progress)
                    for at, scope in enumerate(scopes)
                ]


async def _with_controller(cluster: BenchCluster, scope: str, nodes: Sequence[str], progress: Progress) -> ScaleResult:
    load, began = os.getloadavg()[0], time.monotonic()
    async with running_controller(_spec(cluster, scope), SYNC_DEADLINE) as controller:
        synced_seconds, synced = time.monotonic() - began, process_use(controller.pid)
        progress(f"scope {scope}: synced after {synced_seconds:.1f} s, {synced.resident_mib:.0f} MiB")
        await _until_ready(controller)
        api = cluster.plane.client()
        written: dict[str, float] = {}
        journal = asyncio.create_task(api.follow(MOVES, {}, partial(_note_move, written)))
        try:
            pods = _of_different_owners(cluster, nodes)
            tried = [await _react(cluster, api, pod, written, progress) for pod in pods]
        finally:
            journal.cancel()
            await api.close()
        ended = process_use(controller.pid)
    return ScaleResult(
        nodes=cluster.fleet.nodes,
        pods=cluster.fleet.pods,
        scope=scope,
        load_average=(load, os.getloadavg()[0]),
        filled_seconds=cluster.filled_seconds,
        synced_seconds=synced_seconds,
        synced=synced,
        ended=ended,
        reactions=tuple(reaction for reaction in tried if reaction is not None),
        missed=tried.count(None),
    )


def _spec(cluster: BenchCluster, scope: str) -> ControllerSpec:
    folder = cluster.folder / scope
    folder.mkdir()
    settings = folder / "settings.yaml"
    content = {
        "mode": "act",
        "decision": {"cooldown": "600s"},
        "planner": {"scope": scope},
        "execution": {"limits": {each: {"per10Minutes": 1000, "perDay": 1000} for each in LIMITED}},
    }
    settings.write_text(yaml.safe_dump(content))
    return ControllerSpec(
        cluster.plane.kubeconfig, settings, folder / "rematch.db", folder / "controller.log", free_port()
    )


async def _until_ready(controller: RunningController) -> None:
    """Before that no running pod is moved."""
    async with asyncio.timeout(READY_DEADLINE), aiohttp.ClientSession() as session:
        while True:
            async with session.get(f"{controller.url}/metrics") as answer:
                text = await answer.text()
                if all(line in text for line in READY):
                    return
            await asyncio.sleep(0.5)


def _note_move(written: dict[str, float], seen: Listed | Changed) -> None:
    """When the first entry about each pod was in the journal."""
    if isinstance(seen, Changed):
        written.setdefault(seen.item["spec"]["pod"], time.monotonic())


async def _react(
    cluster: BenchCluster, api: LabApi, pod: Pod, written: dict[str, float], progress: Progress
) -> Reaction | None:
    """One move from the event to the bound replacement; the next begins when this one is over."""
    loop = asyncio.get_running_loop()
    evicted: asyncio.Future[float] = loop.create_future()
    bound: asyncio.Future[float] = loop.create_future()

    def see(change: PodChange) -> None:
        gone, placed = change.evicted, change.bound
        if gone is not None and gone.uid == pod.uid and not evicted.done():
            evicted.set_result(change.at)
        if placed is not None and placed.owner == pod.owner and placed.uid != pod.uid and not bound.done():
            bound.set_result(change.at)

    silence = cluster.observer.listen(see)
    began = time.monotonic()
    try:
        await api.create(f"/api/v1/namespaces/{NAMESPACE}/events", _unhealthy(pod))
        async with asyncio.timeout(MOVE_DEADLINE):
            gone, placed_at = await evicted, await bound
        reaction = Reaction(written.get(pod.key, gone) - began, gone - began, placed_at - began)
        await cluster.observer.until(lambda: cluster.observer.running == cluster.fleet.pods, MOVE_DEADLINE)
    except TimeoutError:
        progress(f"{pod.name}: no move within {MOVE_DEADLINE:g} s")
        return None
    finally:
        silence()
    parts = (("written", reaction.written), ("evicted", reaction.evicted), ("bound", reaction.bound))
    progress(f"{pod.name}: {', '.join(f'{part} after {seconds * 1000:.0f} ms' for part, seconds in parts)}")
    await asyncio.sleep(BETWEEN_MOVES)
    return reaction


def _of_different_owners(cluster: BenchCluster, nodes: Sequence[str]) -> list[Pod]:
    """A pod on each of those nodes. A sibling of a pod that has just moved would wait until its owner has settled."""
    chosen: list[Pod] = []
    for node in nodes:
        taken = {pod.owner for pod in chosen}
        here = sorted((pod for pod in cluster.observer.pods() if pod.node == node), key=lambda pod: pod.name)
        chosen.append(next((pod for pod in here if pod.owner not in taken), here[0]))
    return chosen


def _unhealthy(pod: Pod) -> Json:
    reference = {"namespace": pod.namespace, "name": pod.name, "uid": pod.uid}
    return unhealthy_event(reference, pod.node, f"{pod.name}.unhealthy", 10, SystemClock().now())


def report(result: ScaleResult) -> str:
    lines = [
        f"{result.nodes} nodes, {result.pods} pods (filled in {result.filled_seconds:.0f} s), scope {result.scope},"
        f" load average {result.load_average[0]:.1f} to {result.load_average[1]:.1f}",
        f"synced {result.synced_seconds:.1f} s after its start with {result.synced.cpu_seconds:.1f} s of CPU;"
        f" {result.synced.resident_mib:.0f} MiB then, {result.ended.peak_mib:.0f} MiB at most",
    ]
    if result.reactions:
        lines.append(_times(result, "written", "event -> first write"))
        lines.append(_times(result, "evicted", "event -> eviction request"))
        lines.append(_times(result, "bound", "event -> replacement bound"))
    if result.missed:
        lines.append(f"{result.missed} events without a move")
    return "\n".join(lines)


def _times(result: ScaleResult, part: str, what: str) -> str:
    p50, p95, most = (result.seconds(part, share) for share in (0.5, 0.95, 1.0))
    return f"{what}: p50 {p50:.3f} s, p95 {p95:.3f} s, max {most:.3f} s of {len(result.reactions)}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--pods", type=int, default=20_000)
    parser.add_argument("--moves", type=int, default=50)
    parser.add_argument("--scope", choices=SCOPES, action="append", help="of the planner; both without")
    parser.add_argument("--into", type=Path, help="JSON file for the results")
    wanted = parser.parse_args()
    fleet = Fleet(wanted.nodes, wanted.nodes, wanted.pods // REPLICAS, REPLICAS, scheduler="rematch")
    results = asyncio.run(measure(fleet, wanted.moves, wanted.scope or SCOPES, timed_progress()))
    if wanted.into:
        wanted.into.write_bytes(msgspec.json.format(msgspec.json.encode(results), indent=1))
    for result in results:
        print(report(result))
    return 0 if all(result.within_bar for result in results) else 1


if __name__ == "__main__":
    sys.exit(main())
