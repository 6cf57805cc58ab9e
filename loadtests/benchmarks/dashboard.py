"""The dashboard of a large cluster: how long its requests take, what its charts hold, and what the controller feels.

    python -m loadtests.benchmarks.dashboard [--pods 20000] [--nodes 1000] [-o json]
    python -m loadtests.benchmarks.dashboard --serve 8080 [--pods 20000] [--nodes 1000]

A controller in mode observe, synced from a generated API server in another process, with fresh measurements and some
unhappy pods. Requests come as often as an open page sends them, and before each of them something has changed. The
event loop's figures are the longest stretch for which it did not come round, and its own CPU time in one stretch:
other work on the machine changes only the first. `--serve` shows the page instead, until Ctrl-C.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import sys
import tempfile
import time
import urllib.request
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from loadtests.benchmarks.sync_client import resident, sync_server, write_kubeconfig
from loadtests.benchmarks.sync_server import Shape
from loadtests.workloads.samples import percentile
from reactor.app import LiveController, Options, open_controller
from reactor.cluster.kinds import Kind
from reactor.cluster.records import Event, NodeUsageSample, Pod, PodUsageSample
from reactor.record.logs import configure_logs
from reactor.settings.model import Mode
from reactor.signals.measurements import MetricsSource
from reactor.web.chart_samples import SAMPLES_KEPT, ChartSample
from reactor.web.live import SAMPLE_EVERY, LiveView
from reactor.web.server import build_app, listening, live_view

OVERVIEW_BAR_MS = 300.0
TIMELINE_BAR_MIB = 30.0
BLOCKED_CPU_BAR_MS = 50.0
REQUESTS = 30
PAUSE = 0.5
"""Seconds between the requests of a page: `Pace.interval`."""
CYCLES = 40
UNHAPPY = 40
DEADLINE = 30.0
_TICK = 0.002


@dataclass(frozen=True, slots=True)
class LoopUse:
    blocked_ms: float
    """The longest time for which the event loop did not come round."""
    cpu_ms: float
    """The most CPU time that its thread took in one go."""


@dataclass(frozen=True, slots=True)
class DashboardResult:
    pods: int
    nodes: int
    overview_p50_ms: float
    overview_p95_ms: float
    overview_kib: float
    search_p95_ms: float
    pods_p95_ms: float
    series_p50_ms: float
    series_p95_ms: float
    timeline_mib: float
    """What a full timeline adds to the resident memory."""
    idle: LoopUse
    """Without a viewer; the controller's own samples and cycles included."""
    serving: LoopUse
    cycle_alone_ms: float
    """p95 of cycles without a viewer."""
    cycle_served_ms: float
    """p95 of cycles while requests follow each other without a pause."""


class LoopMeter:
    def __init__(self) -> None:
        self._blocked = self._cpu = 0.0

    async def run(self) -> None:
        while True:
            began, used = time.perf_counter(), time.thread_time()
            await asyncio.sleep(_TICK)
            self._blocked = max(self._blocked, time.perf_counter() - began - _TICK)
            self._cpu = max(self._cpu, time.thread_time() - used)

    def read(self) -> LoopUse:
        """Since the last call."""
        found = LoopUse(self._blocked * 1000, self._cpu * 1000)
        self._blocked = self._cpu = 0.0
        return found


async def measure_async(shape: Shape) -> DashboardResult:
    async with large_controller(shape) as live:
        view = live_view(live)
        app = build_app(view, view, live.controller.instruments.registry, live.controller.clock)
        async with listening(app, "127.0.0.1", 0) as url:
            meter = LoopMeter()
            with _running(meter), _sampling(view):
                return await _measured(live, view, meter, f"{url}/api/v1", shape)


async def _measured(live: LiveController, view: LiveView, meter: LoopMeter, api: str, shape: Shape) -> DashboardResult:
    timeline = await _fill_timeline(live, view)
    await _times(live, f"{api}/overview", 2)
    alone = await _cycles(live)
    meter.read()
    await asyncio.sleep(REQUESTS * PAUSE / 4)
    idle = meter.read()
    overview = await _times(live, f"{api}/overview?nodes=12", REQUESTS)
    search = await _times(live, f"{api}/overview?nodes=12&search=web-17", REQUESTS // 3)
    pods = await _times(live, f"{api}/pods?limit=50", REQUESTS // 3)
    series = await _times(live, f"{api}/series", REQUESTS)
    serving = meter.read()
    polling = asyncio.create_task(_poll(live, f"{api}/overview?nodes=12"))
    served = await _cycles(live)
    polling.cancel()
    await asyncio.gather(polling, return_exceptions=True)
    return DashboardResult(
        pods=shape.pods,
        nodes=shape.nodes,
        overview_p50_ms=percentile(overview, 0.5),
        overview_p95_ms=percentile(overview, 0.95),
        overview_kib=len(await asyncio.to_thread(_get, f"{api}/overview?nodes=12")) / 1024,
        search_p95_ms=percentile(search, 0.95),
        pods_p95_ms=percentile(pods, 0.95),
        series_p50_ms=percentile(series, 0.5),
        series_p95_ms=percentile(series, 0.95),
        timeline_mib=timeline,
        idle=idle,
        serving=serving,
        cycle_alone_ms=percentile(alone, 0.95),
        cycle_served_ms=percentile(served, 0.95),
    )


@asynccontextmanager
async def large_controller(shape: Shape) -> AsyncIterator[LiveController]:
    """Synced, measured, with unhappy pods. Cycles run only where a bench runs them."""
    with tempfile.TemporaryDirectory(prefix="rematch-bench-") as folder:
        async with sync_server(shape) as port:
            kubeconfig = write_kubeconfig(Path(folder, "kubeconfig"), port)
            options = Options(Path(folder, "rematch.db"), str(kubeconfig), dry_run=True, mode=Mode.OBSERVE)
            async with open_controller(options) as live:
                watching = asyncio.create_task(live.watch.run())
                try:
                    async with asyncio.timeout(4 * DEADLINE):
                        await live.controller.state.until_synced()
                    _make_unhappy(live)
                    measure_usage(live)
                    yield live
                finally:
                    watching.cancel()
                    await asyncio.gather(watching, return_exceptions=True)


def measure_usage(live: LiveController) -> None:
    """Every pod and node has a fresh measurement. Nodes differ; one in twenty is crowded."""
    state, now = live.controller.state, live.controller.clock.now()
    cluster = state.mirror.freeze(now)
    pods = [PodUsageSample(pod.namespace, pod.name, 0.2, 2.0**28, now) for pod in cluster.pods.values()]
    nodes = [
        NodeUsageSample(node.name, node.allocatable["cpu"] * _load(number), node.allocatable["memory"] * 0.4, now)
        for number, node in enumerate(cluster.nodes.values())
    ]
    state.usage.record_pods(pods, MetricsSource.METRICS_API, now)
    state.usage.record_nodes(nodes, MetricsSource.METRICS_API, now)
    state.usage.estimate()
    state.usage_changed()


def _load(number: int) -> float:
    return 0.93 if number % 20 == 7 else 0.15 + 0.6 * (number * 37 % 101) / 101


def _make_unhappy(live: LiveController) -> None:
    controller = live.controller
    pods = list(controller.state.mirror.freeze(controller.clock.now()).pods.values())
    for number, pod in enumerate(pods[:: len(pods) // UNHAPPY + 1]):
        controller.state.mirror.upsert(Kind.EVENTS, _unhealthy(pod, number, controller.clock.now()))


def _unhealthy(pod: Pod, number: int, now: float) -> Event:
    message = "Liveness probe failed: HTTP probe failed with statuscode: 500"
    identity = (f"event-{number}", pod.namespace, f"{pod.name}.{number}", "1")
    about = (pod.name, pod.uid, "spec.containers{web}")
    return Event(*identity, "Unhealthy", "Warning", message, *about, 3 + number % 9, now - 60, now, "kubelet")


async def _fill_timeline(live: LiveController, view: LiveView) -> float:
    """MiB that it adds. Loads wander, so that no two samples share their numbers."""
    before, now = resident("VmRSS"), live.controller.clock.now()
    nodes = list(live.controller.state.mirror.freeze(now).nodes)
    for index in range(SAMPLES_KEPT):
        shares: dict[str, float | None] = {
            name: _load(number) + 0.0001 * (index * 7 % 301) for number, name in enumerate(nodes)
        }
        at = now - SAMPLE_EVERY * (SAMPLES_KEPT - index)
        view.samples.add(ChartSample(at, 0.99, 0.05, 0.6, 0.99, shares, dict.fromkeys(nodes, 0.4)))
        if index % 100 == 0:
            await asyncio.sleep(0)
    return resident("VmRSS") - before


async def _times(live: LiveController, url: str, requests: int) -> list[float]:
    """Milliseconds, sorted. Something changes before every request, as in a busy cluster."""
    found = []
    for _ in range(requests):
        live.controller.state.usage_changed()
        began = time.perf_counter()
        await asyncio.to_thread(_get, url)
        found.append((time.perf_counter() - began) * 1000)
        await asyncio.sleep(PAUSE)
    return sorted(found)


async def _poll(live: LiveController, url: str) -> None:
    while True:
        live.controller.state.usage_changed()
        await asyncio.to_thread(_get, url)


async def _cycles(live: LiveController) -> list[float]:
    found = []
    for _ in range(CYCLES):
        began = time.perf_counter()
        await live.controller.loop.step({})
        found.append((time.perf_counter() - began) * 1000)
        await asyncio.sleep(PAUSE / 10)
    return sorted(found)


def _get(url: str) -> bytes:
    request = urllib.request.Request(url, headers={"Accept-Encoding": "gzip"})
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=DEADLINE) as response:
        body: bytes = response.read()
        return body


@contextmanager
def _running(meter: LoopMeter) -> Iterator[None]:
    task = asyncio.create_task(meter.run())
    try:
        yield
    finally:
        task.cancel()


@contextmanager
def _sampling(view: LiveView) -> Iterator[None]:
    task = asyncio.create_task(view.keep_sampling())
    try:
        yield
    finally:
        task.cancel()


def measure(pods: int, nodes: int) -> DashboardResult:
    configure_logs(level="warning")
    return asyncio.run(measure_async(Shape(pods, nodes)))


def run(pods: int, nodes: int) -> list[DashboardResult]:
    """A twentieth, a quarter, all; each in a fresh process, so that memory is its own."""
    sizes = [(max(1, pods // part), max(1, nodes // part)) for part in (20, 4, 1)]
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context, max_tasks_per_child=1) as processes:
        return [processes.submit(measure, *size).result() for size in sizes]


async def show(shape: Shape, port: int) -> None:
    """The page, with measurements that stay fresh."""
    configure_logs(level="warning")
    async with large_controller(shape) as live:
        view = live_view(live)
        await _fill_timeline(live, view)
        app = build_app(view, view, live.controller.instruments.registry, live.controller.clock)
        async with listening(app, "127.0.0.1", port) as url:
            print(url, flush=True)
            with _sampling(view):
                while True:
                    measure_usage(live)
                    await live.controller.loop.step({})
                    await asyncio.sleep(5.0)


def _row(result: DashboardResult) -> str:
    cells = (
        f"{result.pods:,}",
        f"{result.nodes:,}",
        f"{result.overview_p50_ms:.0f} / {result.overview_p95_ms:.0f}",
        f"{result.overview_kib:.0f}",
        f"{result.search_p95_ms:.0f}",
        f"{result.pods_p95_ms:.0f}",
        f"{result.series_p50_ms:.0f} / {result.series_p95_ms:.0f}",
        f"{result.timeline_mib:.1f}",
        f"{result.serving.blocked_ms:.0f} ({result.idle.blocked_ms:.0f})",
        f"{result.serving.cpu_ms:.0f} ({result.idle.cpu_ms:.0f})",
        f"{result.cycle_served_ms:.0f} ({result.cycle_alone_ms:.0f})",
    )
    return f"| {' | '.join(cells)} |"


HEAD = (
    "| pods | nodes | overview p50 / p95, ms | KiB | search p95 | pods p95 | series p50 / p95, ms | timeline, MiB"
    " | loop blocked, ms (idle) | loop CPU at once, ms (idle) | cycle p95, ms (alone) |"
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pods", type=int, default=20_000)
    parser.add_argument("--nodes", type=int, default=1_000)
    parser.add_argument("--serve", type=int, metavar="PORT", help="show the page instead of measuring")
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table")
    wanted = parser.parse_args()
    if wanted.serve is not None:
        asyncio.run(show(Shape(wanted.pods, wanted.nodes), wanted.serve))
        return 0
    results = run(wanted.pods, wanted.nodes)
    largest = results[-1]
    passed = (
        largest.overview_p95_ms < OVERVIEW_BAR_MS
        and largest.timeline_mib < TIMELINE_BAR_MIB
        and largest.serving.cpu_ms < BLOCKED_CPU_BAR_MS
    )
    if wanted.output == "json":
        print(json.dumps({"results": [asdict(result) for result in results], "passed": passed}, indent=2))
    else:
        print("\n".join((HEAD, "|---" * HEAD.count(" |") + "|", *map(_row, results))))
        bars = f"overview p95 {OVERVIEW_BAR_MS:g} ms, timeline {TIMELINE_BAR_MIB:g} MiB"
        print(f"bars: {bars}, {BLOCKED_CPU_BAR_MS:g} ms of CPU on the loop: {'passed' if passed else 'FAILED'}")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
