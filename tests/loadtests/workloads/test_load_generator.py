from __future__ import annotations

import asyncio
from typing import Any

import pytest

from loadtests.workloads.app_spec import AppSpec
from loadtests.workloads.http_server import AppServer
from loadtests.workloads.live_cpu import LiveCpu
from loadtests.workloads.load_generator import AppLoad, Arrival, LoadGenerator, LoadPlan, RateStep
from loadtests.workloads.samples import LoadLog, RequestOutcome, RequestSample, summarise, summarise_by_app
from loadtests.workloads.targets import FixedTargets, ForeignAddressError, Target
from loadtests.workloads.webapp import WebApp
from reactor.clock import SystemClock

TARGET = Target("127.16.200.8", 18081)
NOBODY = Target("127.16.200.9", 18082)


def plan(*apps: str, rate: float = 40, duration: float = 0.5, timeout: float = 1.0, most: int = 1024) -> LoadPlan:
    loads = tuple(AppLoad(app, (RateStep(0, rate),)) for app in apps)
    return LoadPlan(loads, 1, duration, Arrival.CONSTANT, timeout, most)


async def run(plan: LoadPlan, targets: dict[str, list[Target]], spec: AppSpec | None = None) -> LoadLog:
    cpu = LiveCpu(4)
    cpu.add_pod("pod", 1)
    server = AppServer(WebApp(spec or AppSpec(work_ms=1), cpu, "pod", seed=1))
    await server.listen(TARGET.host, TARGET.port)
    log = LoadLog(SystemClock())
    try:
        await LoadGenerator(plan, FixedTargets(targets), log, SystemClock()).run()
    finally:
        server.abort()
        cpu.close()
    return log


async def test_every_planned_request_is_counted_once() -> None:
    log = await run(plan("a", "b", "c"), {"a": [TARGET], "b": [NOBODY], "c": []})
    by_app = summarise_by_app(log.samples)
    assert {app: (found.requests, found.failures) for app, found in by_app.items()} == {
        "a": (20, 0),
        "b": (20, 20),
        "c": (20, 20),
    }
    outcomes = {app: {sample.outcome for sample in log.samples if sample.app == app} for app in "abc"}
    assert outcomes == {"a": {RequestOutcome.OK}, "b": {RequestOutcome.REFUSED}, "c": {RequestOutcome.NO_READY_POD}}


async def test_a_failure_counts_with_its_timeout() -> None:
    log = await run(plan("b", timeout=1.5), {"b": [NOBODY]})
    summary = summarise(log.samples)
    assert (summary.availability, summary.p50_ms, summary.p99_ms) == (0, 1500, 1500)


async def test_slow_answers_do_not_slow_the_requests_down() -> None:
    log = await run(plan("a", timeout=0.2), {"a": [TARGET]}, AppSpec(work_ms=60_000, workers=64))
    assert [sample.outcome for sample in log.samples] == [RequestOutcome.TIMEOUT] * 20


async def test_requests_in_flight_are_bounded() -> None:
    log = await run(plan("a", timeout=0.3, most=3), {"a": [TARGET]}, AppSpec(work_ms=60_000, workers=64))
    outcomes = [sample.outcome for sample in log.samples]
    assert outcomes.count(RequestOutcome.TOO_MANY_IN_FLIGHT) >= 10
    assert len(outcomes) == 20


async def test_a_cancelled_run_leaves_no_request_behind() -> None:
    task = asyncio.create_task(run(plan("a", duration=30), {"a": [TARGET]}, AppSpec(work_ms=60_000)))
    await asyncio.sleep(0.1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    # The server closes what it had just accepted in a moment; a request that goes on takes a minute.
    async with asyncio.timeout(10):
        while others := asyncio.all_tasks() - {asyncio.current_task()}:
            await asyncio.sleep(0.01)
    assert not others


@pytest.mark.parametrize("address", ["10.0.0.1", "192.168.1.1", "8.8.8.8", "::1", "128.0.0.1"])
def test_load_goes_to_loopback_only(address: str) -> None:
    with pytest.raises(ForeignAddressError, match=r"127\.0\.0\.0/8"):
        Target(address, 80)


def test_summary_of_known_samples() -> None:
    samples = [RequestSample("a", 0, index / 1000, RequestOutcome.OK) for index in range(1, 100)]
    samples.append(RequestSample("a", 0, 2.0, RequestOutcome.TIMEOUT))
    summary = summarise(samples)
    assert (summary.requests, summary.failures) == (100, 1)
    assert summary.availability == pytest.approx(0.99)
    assert (summary.p50_ms, summary.p95_ms) == pytest.approx((50.5, 95.05))
    assert summary.p99_ms == pytest.approx(99 + 0.01 * 1901)


def test_no_requests_are_no_availability() -> None:
    assert summarise([]).availability is None


def test_the_window_forgets(manual_clock: Any) -> None:
    log = LoadLog(manual_clock, window=10)
    log.add(RequestSample("a", 0, 1, RequestOutcome.TIMEOUT))
    manual_clock.time += 8
    log.add(RequestSample("a", 8, 0.1, RequestOutcome.OK))
    assert log.recent().availability == 0.5
    manual_clock.time += 5
    assert log.recent().availability == 1
    manual_clock.time += 10
    assert log.recent().requests == 0
    assert len(log.samples) == 2
