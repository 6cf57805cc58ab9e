"""Initial sync of a large cluster: wall and CPU time, memory, and how they grow.

python -m loadtests.benchmarks.sync_load --pods 150000 --nodes 5000 [-o json]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass

from loadtests.benchmarks.sync_client import MIB, FailOnTrouble, bare_state, resident, served
from loadtests.benchmarks.sync_server import Objects, Shape
from reactor.clock import SystemClock
from reactor.cluster.reads import ClusterReader
from reactor.cluster.watch import ClusterWatch, WatchTiming
from reactor.state.moves import ActiveMoves

CPU_BAR = 30.0
RESIDENT_BAR = 1024.0


@dataclass(frozen=True, slots=True)
class SyncResult:
    pods: int
    nodes: int
    bytes_per_pod_sent: int
    wall_seconds: float
    cpu_seconds: float
    pods_per_second: float
    """Of wall time."""
    peak_mib: float
    resident_mib: float
    bytes_per_pod_kept: float
    """Growth of the resident set by the sync, shared evenly among the pods; all other kinds included."""
    freeze_ms: float


async def _sync(shape: Shape) -> SyncResult:
    async with served(shape) as connection:
        reader = ClusterReader(connection)
        state = bare_state(reader)
        watch = ClusterWatch(reader, state.mirror, FailOnTrouble(), WatchTiming(SystemClock()))
        before, cpu, wall = resident("VmRSS"), time.process_time(), time.monotonic()
        running = asyncio.create_task(watch.run())
        synced = asyncio.create_task(state.until_synced())
        await asyncio.wait((running, synced), return_when=asyncio.FIRST_COMPLETED)
        wall, cpu = time.monotonic() - wall, time.process_time() - cpu
        if running.done():
            running.result()
        started = time.perf_counter()
        view = state.freeze(ActiveMoves()).cluster
        freeze = time.perf_counter() - started
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    kept = resident("VmRSS") - before
    return SyncResult(
        pods=len(view.pods),
        nodes=len(view.nodes),
        bytes_per_pod_sent=len(Objects(shape).pod(0)),
        wall_seconds=round(wall, 2),
        cpu_seconds=round(cpu, 2),
        pods_per_second=round(len(view.pods) / wall),
        peak_mib=round(resident("VmHWM"), 1),
        resident_mib=round(resident("VmRSS"), 1),
        bytes_per_pod_kept=round(kept * MIB / len(view.pods)),
        freeze_ms=round(freeze * 1000, 1),
    )


def measure(pods: int, nodes: int) -> SyncResult:
    return asyncio.run(_sync(Shape(pods, nodes)))


def run(pods: int, nodes: int) -> list[SyncResult]:
    """A tenth, a third, all; each in a fresh process, so that memory is its own."""
    sizes = [(max(1, pods // part), max(1, nodes // part)) for part in (10, 3, 1)]
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context, max_tasks_per_child=1) as processes:
        return [processes.submit(measure, *size).result() for size in sizes]


def _line(result: SyncResult) -> str:
    return (
        f"{result.pods:>7} pods of {result.bytes_per_pod_sent} B, {result.nodes} nodes:"
        f" {result.wall_seconds:.1f} s wall, {result.cpu_seconds:.1f} s CPU, {result.pods_per_second:.0f} pods/s,"
        f" peak {result.peak_mib:.0f} MiB, {result.bytes_per_pod_kept:.0f} B kept per pod,"
        f" freeze {result.freeze_ms:.0f} ms"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pods", type=int, default=150_000)
    parser.add_argument("--nodes", type=int, default=5_000)
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table")
    arguments = parser.parse_args()
    results = run(arguments.pods, arguments.nodes)
    largest = results[-1]
    passed = largest.cpu_seconds <= CPU_BAR and largest.peak_mib <= RESIDENT_BAR
    if arguments.output == "json":
        print(json.dumps({"results": [asdict(result) for result in results], "passed": passed}, indent=2))
    else:
        for result in results:
            print(_line(result))
        print(f"bars: {CPU_BAR:.0f} s CPU, {RESIDENT_BAR:.0f} MiB resident: {'passed' if passed else 'FAILED'}")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
