"""From the Unhealthy event that crosses the threshold to the eviction request, and what waiting costs.

python -m loadtests.benchmarks.reaction [--nodes 100] [--pods-per-node 10] [--scope NAME] [--moves 45] [--idle 30]
    [--rematch PROGRAM] [-o json]

The controller is a process of its own (`rematch run`, mode act) against the embedded API server. The clock starts
before the event is stored. It stops when the server takes the first write of the move, which is its journal entry, and
when it accepts the eviction: after a surge that is when the replacement is ready.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import msgspec
from prometheus_client.parser import text_string_to_metric_families

from loadtests.benchmarks.fake_pods import FakePodCluster, Size, fake_pod_cluster
from loadtests.benchmarks.process import process_use
from loadtests.demo.controller import ControllerSpec, RunningController, running_controller
from loadtests.embedded import Change
from loadtests.embedded.objects import is_deleting
from loadtests.embedded.resources import PODS
from loadtests.tools.ports import free_port
from loadtests.workloads.samples import percentile
from reactor.clock import SystemClock

REACTION_BAR_MS = 100.0
"""Event -> first write, p95, of 1,000 pods."""
IDLE_CPU_BAR = 0.02
IDLE_MEMORY_BAR_MIB = 150.0
START_DEADLINE = 600.0
"""Seconds: a large cluster on a busy machine takes a while to list."""
DEADLINE = 180.0
"""Of a move: where the server of 150,000 pods shares a busy machine, its replacement may take a minute."""
STAGES = "rematch_cycle_stage_duration_seconds"

SETTINGS = """\
mode: act
decision: {cooldown: 600s}
metrics: {metricsApi: {interval: 15s}}
"""
LIMITS = """\
execution: {limits: {cluster: {per10Minutes: 1000, perDay: 1000}, namespace: {per10Minutes: 1000, perDay: 1000}}}
"""
"""The defaults allow 10 moves of one namespace in 10 minutes. Versions before there were limits do not know the key."""


@dataclass(frozen=True, slots=True)
class ReactionResult:
    pods: int
    moves: int
    start_seconds: float
    """From the start of `rematch run` until it is synced."""
    written_p50_ms: float
    """To the first write of the move: its entry in the journal."""
    written_p95_ms: float
    written_max_ms: float
    reaction_p50_ms: float
    reaction_p95_ms: float
    reaction_max_ms: float
    bound_p50_ms: float
    bound_p95_ms: float
    reaction_cpu_ms: float
    """CPU time of the controller per move, until the replacement runs. Other work on the machine hardly changes it."""
    stage_ms: Mapping[str, float]
    """Per move, by stage of the cycle, as the controller's own metrics show it."""
    idle_cpu_share: float
    idle_resident_mib: float
    peak_mib: float


class _Cpu(msgspec.Struct):
    used: float | None = None


class _Node(msgspec.Struct):
    cpu: _Cpu | None = None


class _Overview(msgspec.Struct):
    """The part of the API's answer that is needed here: other versions may have other parts."""

    nodes: tuple[_Node, ...] = ()


@dataclass(frozen=True, slots=True)
class Reaction:
    written: float
    evicted: float
    bound: float


async def measure(
    size: Size, moves: int, idle: float, program: str | None = None, scope: str | None = None
) -> ReactionResult:
    clock = SystemClock()
    with tempfile.TemporaryDirectory(prefix="rematch-bench-") as folder:
        async with fake_pod_cluster(size, clock) as fake:
            given = "" if scope is None else f"planner: {{scope: {scope}}}\n"
            spec = _spec(Path(folder), fake, SETTINGS + given + (LIMITS if program is None else ""))
            if program is not None:
                spec = replace(spec, program=(program,))
            began = time.monotonic()
            async with running_controller(spec, START_DEADLINE) as controller:
                started = time.monotonic() - began
                await _measured(controller)
                cpu, resident = await _idle(controller, idle)
                stages, cpu_before = await _stages(controller), process_use(controller.pid).cpu_seconds
                reactions = [await _react(fake, number) for number in range(moves)]
                used = process_use(controller.pid).cpu_seconds - cpu_before
                spent = {name: after - stages.get(name, 0.0) for name, after in (await _stages(controller)).items()}
                peak = process_use(controller.pid).peak_mib
    written = sorted(one.written * 1000 for one in reactions)
    evicted = sorted(one.evicted * 1000 for one in reactions)
    bound = sorted(one.bound * 1000 for one in reactions)
    return ReactionResult(
        pods=size.pods,
        moves=moves,
        start_seconds=started,
        written_p50_ms=percentile(written, 0.5),
        written_p95_ms=percentile(written, 0.95),
        written_max_ms=written[-1],
        reaction_p50_ms=percentile(evicted, 0.5),
        reaction_p95_ms=percentile(evicted, 0.95),
        reaction_max_ms=evicted[-1],
        bound_p50_ms=percentile(bound, 0.5),
        bound_p95_ms=percentile(bound, 0.95),
        reaction_cpu_ms=used * 1000 / moves,
        stage_ms={name: seconds * 1000 / moves for name, seconds in spent.items()},
        idle_cpu_share=cpu,
        idle_resident_mib=resident,
        peak_mib=peak,
    )


def _spec(folder: Path, fake: FakePodCluster, content: str) -> ControllerSpec:
    settings = folder / "settings.yaml"
    settings.write_text(content)
    kubeconfig = fake.cluster.kubeconfig(folder / "kubeconfig")
    return ControllerSpec(kubeconfig, settings, folder / "rematch.db", folder / "controller.log", free_port())


async def _measured(controller: RunningController) -> None:
    """The first round of metrics is in: before it no running pod is moved."""
    async with asyncio.timeout(DEADLINE):
        while not await _all_measured(controller):
            await asyncio.sleep(0.2)


async def _all_measured(controller: RunningController) -> bool:
    try:
        nodes = (await controller.ask("overview", _Overview)).nodes
    except TimeoutError:  # while a large cluster is measured
        return False
    return bool(nodes) and all(node.cpu is not None and node.cpu.used is not None for node in nodes)


async def _idle(controller: RunningController, seconds: float) -> tuple[float, float]:
    await asyncio.sleep(3.0)
    before, began = process_use(controller.pid), time.monotonic()
    await asyncio.sleep(seconds)
    after = process_use(controller.pid)
    return (after.cpu_seconds - before.cpu_seconds) / (time.monotonic() - began), after.resident_mib


async def _stages(controller: RunningController) -> dict[str, float]:
    """Seconds spent in each stage of all cycles so far."""
    families = text_string_to_metric_families(await controller.metrics())
    samples = [sample for family in families if family.name == STAGES for sample in family.samples]
    return {sample.labels["stage"]: sample.value for sample in samples if sample.name == f"{STAGES}_sum"}


async def _react(fake: FakePodCluster, number: int) -> Reaction:
    """One move from the event to the bound replacement; the next begins when this one is over."""
    pod = fake.crowded_pod(number)
    loop = asyncio.get_running_loop()
    written, evicted, bound = loop.create_future(), loop.create_future(), loop.create_future()
    owner = pod["metadata"]["labels"]["app"]

    def watch(change: Change) -> None:
        if change.resource.kind == "Move" and not written.done():
            written.set_result(time.perf_counter())
        if change.resource is not PODS or change.new.obj["metadata"]["labels"].get("app") != owner:
            return
        if change.new.obj["metadata"]["uid"] == pod["metadata"]["uid"]:
            if is_deleting(change.new.obj) and not evicted.done():
                evicted.set_result(time.perf_counter())
                if not written.done():  # a version without a journal
                    written.set_result(time.perf_counter())
        elif change.new.obj["spec"].get("nodeName") and not bound.done():
            bound.set_result(time.perf_counter())

    fake.cluster.store.observe(watch)
    began = time.perf_counter()
    fake.report_unhealthy(pod)
    async with asyncio.timeout(DEADLINE):
        result = Reaction(await written - began, await evicted - began, await bound - began)
    await asyncio.sleep(0.3)
    return result


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=Size().nodes)
    parser.add_argument("--pods-per-node", type=int, default=Size().pods_per_node)
    parser.add_argument("--scope", help="of the planner, instead of the default")
    parser.add_argument("--moves", type=int, default=45)
    parser.add_argument("--idle", type=float, default=30.0)
    parser.add_argument("--rematch", help="the program to measure instead of this version's")
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text")
    wanted = parser.parse_args()
    size = Size(wanted.nodes, wanted.pods_per_node)
    result = asyncio.run(measure(size, wanted.moves, wanted.idle, wanted.rematch, wanted.scope))
    if wanted.output == "json":
        print(json.dumps(asdict(result)))
        return _verdict(result)
    print(f"{result.pods} pods, {result.moves} moves")
    print(
        f"event -> first write: p50 {result.written_p50_ms:.1f} ms, p95 {result.written_p95_ms:.1f} ms,"
        f" max {result.written_max_ms:.1f} ms (bar: p95 < {REACTION_BAR_MS:g} ms)"
    )
    print(
        f"event -> eviction request: p50 {result.reaction_p50_ms:.1f} ms, p95 {result.reaction_p95_ms:.1f} ms,"
        f" max {result.reaction_max_ms:.1f} ms"
    )
    print(f"event -> replacement bound: p50 {result.bound_p50_ms:.1f} ms, p95 {result.bound_p95_ms:.1f} ms")
    stages = ", ".join(f"{name} {spent:.1f}" for name, spent in result.stage_ms.items())
    print(
        f"per move: {result.reaction_cpu_ms:.0f} ms of the controller's CPU; ms in the stages of its cycles: {stages}"
    )
    print(
        f"idle: {result.idle_cpu_share:.2%} of a core (bar {IDLE_CPU_BAR:.0%}),"
        f" {result.idle_resident_mib:.0f} MiB resident (bar {IDLE_MEMORY_BAR_MIB:g} MiB), {result.peak_mib:.0f} at most"
    )
    return _verdict(result)


def _verdict(result: ReactionResult) -> int:
    fast = result.written_p95_ms < REACTION_BAR_MS
    lean = result.idle_cpu_share < IDLE_CPU_BAR and result.idle_resident_mib < IDLE_MEMORY_BAR_MIB
    return 0 if fast and lean else 1


if __name__ == "__main__":
    sys.exit(main())
