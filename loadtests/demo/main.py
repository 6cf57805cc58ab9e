"""`rematch demo` (with a person looking on, or both arms for a script) and `rematch lab up`."""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from loadtests.demo.arm import Arm, ArmResult, ArmSpec, drive, run_arm, running_arm
from loadtests.demo.cluster import demo_cluster
from loadtests.demo.ending import ending
from loadtests.demo.progress import BUSY, Progress, busy_machine
from loadtests.demo.scenario import stable_scenario
from loadtests.tools.ports import free_port
from loadtests.tools.state_folder import claimed
from reactor.cli.stopping import until_stopped
from reactor.clock import SystemClock
from reactor.errors import InputError
from reactor.settings.duration import parse_duration
from reactor.settings.model import Mode

UNTIL_STOPPED = 12 * 3600.0
HEADLESS_DURATION = 120.0
SHORTEST = 5.0
WARM_UP = (0.0, 0.4), (10.0, 0.7), (20.0, 1.0)
"""(seconds, share of the full rate) while a person looks on."""


@dataclass(frozen=True, slots=True)
class DemoOptions:
    """The command line of `rematch demo`."""

    duration: str | None
    headless: bool
    output: str
    seed: int
    threshold: float
    port: int
    load: str
    state: Path
    verbose: bool = False

    def k6(self) -> Path | None:
        """The dashboard's availability comes from our own generator, so k6 is for headless runs."""
        found = shutil.which("k6")
        if self.load == "k6" and found is None:
            raise InputError("--load k6: k6 is not on the PATH; install it, or leave --load away")
        if self.load == "k6" and not self.headless:
            raise InputError("--load k6 needs --headless: the dashboard's charts come from the built-in generator")
        return Path(found) if found is not None and self.headless and self.load != "builtin" else None


def main(options: DemoOptions) -> None:
    if options.output == "json" and not options.headless:
        raise click.UsageError("-o json needs --headless")
    # `make run` has no option to hand on.
    with claimed(options.state, "start this one as `.venv/bin/rematch demo --state DIR`"):
        run = _headless(options) if options.headless else _with_a_person(options)
        if asyncio.run(until_stopped(run)):
            click.echo("stopped", err=True)


def seconds(text: str | None, default: float) -> float:
    if text is None:
        return default
    try:
        value = parse_duration(text)
    except ValueError as error:
        raise InputError(f"--duration: {error}") from error
    if not isinstance(value, float) or value < SHORTEST:
        raise InputError(f"--duration: {text} is too short to show anything; at least {SHORTEST:g}s")
    return value


async def _headless(options: DemoOptions) -> None:
    duration = seconds(options.duration, HEADLESS_DURATION)
    arms: dict[str, dict[str, Any]] = {}
    for name, mode in (("default", Mode.OBSERVE), ("rematch", Mode.ACT)):
        click.echo(f"arm {name}: {duration:g} s of load ...", err=True)
        scenario = stable_scenario(options.seed, duration)
        spec = ArmSpec(scenario, mode, options.threshold, options.state, free_port(), options.k6())
        result = await run_arm(spec, SystemClock())
        if result.lateness > BUSY:
            click.echo(f"arm {name}: {busy_machine(result.lateness)}", err=True)
        arms[name] = arm_document(result)
    click.echo(json.dumps(arms, indent=2) if options.output == "json" else _table(arms))


def arm_document(result: ArmResult) -> dict[str, Any]:
    load, series = result.load, result.series
    start = series.times[0] if series.times else 0.0
    return {
        "requests": load.requests,
        "failures": load.failures,
        "availability": load.availability,
        "p50Ms": load.p50_ms,
        "p95Ms": load.p95_ms,
        "p99Ms": load.p99_ms,
        "rematches": result.rematches,
        "moves": result.moves,
        "podsWithoutNode": result.pods_without_node,
        "happiness": [
            {"seconds": round(at - start, 1), "min": low, "mean": mean}
            for at, low, mean in zip(series.times, series.happiness_min, series.happiness_mean, strict=True)
        ],
        "generatorLatenessMs": round(result.lateness * 1000, 1),
    }


def _table(arms: dict[str, dict[str, Any]]) -> str:
    from reactor.cli.output import table

    keys = [key for key in next(iter(arms.values())) if key != "happiness"]
    rows = [(key, *(_cell(arm[key]) for arm in arms.values())) for key in keys]
    return table(("", *arms), rows)


def _cell(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


async def _with_a_person(options: DemoOptions) -> None:
    options.k6()
    duration = seconds(options.duration, UNTIL_STOPPED)
    steps = tuple((at / duration, share) for at, share in WARM_UP if at < duration)
    scenario = replace(stable_scenario(options.seed, duration), steps=steps)
    click.echo("starting an embedded cluster: 3 workers (12, 5 and 8 cores), 15 web apps ...")
    port = free_port(options.port)
    if options.port not in (0, port):
        click.echo(
            f"port {options.port} is taken: tell rematch status, explain and history --server http://127.0.0.1:{port}"
        )
    spec = ArmSpec(scenario, Mode.ACT, options.threshold, options.state, port)
    clock = SystemClock()
    async with running_arm(spec, clock) as arm:
        click.echo(_welcome(arm))
        began = clock.now()
        load = asyncio.create_task(drive(arm, clock))
        progress = Progress(arm, sys.stdout, options.verbose)
        report = asyncio.create_task(progress.report())
        try:
            await asyncio.wait({load, report}, return_when=asyncio.FIRST_COMPLETED)
            if report.done():
                report.result()
            await load
        finally:
            for task in (load, report):
                task.cancel()
            await asyncio.gather(load, report, return_exceptions=True)
            click.echo(f"\n{await ending(arm.lab.log.samples, began, arm.store)}")
            if progress.late > BUSY:
                click.echo(busy_machine(progress.late))


def _welcome(arm: Arm) -> str:
    weak = max(arm.spec.scenario.node_load().items(), key=lambda item: item[1])
    return (
        f"\n  dashboard   {arm.controller.url}/\n"
        f"  kubectl     kubectl --kubeconfig {arm.kubeconfig} get pods -A -o wide -w\n"
        f"  settings    {arm.kubeconfig.parent / 'settings.yaml'} (edit it: in force within 2 s)\n"
        f"  store       {arm.store} (rematch history --store ...)\n\n"
        "The apps were placed by kube-scheduler's default scores on their stated requests.\n"
        f"The load rises for 20 s; at full load {weak[0]} would need {weak[1]:.0%} of its CPU. Ctrl-C ends it.\n"
        "Moves are printed one by one, waits by their number (all: --verbose).\n"
    )


def up(port: int, state: Path, seed: int) -> None:
    with claimed(state):
        asyncio.run(until_stopped(_up(port, state, seed)))
    click.echo("stopped", err=True)


async def _up(port: int, state: Path, seed: int) -> None:
    async with demo_cluster(stable_scenario(seed, 3600.0), SystemClock(), port) as lab:
        kubeconfig = lab.cluster.kubeconfig(state / "kubeconfig")
        click.echo(f"API server   {lab.cluster.url}")
        click.echo(f"Prometheus   {lab.prometheus.url}")
        click.echo(f"kubectl      kubectl --kubeconfig {kubeconfig} get pods -A")
        click.echo(f"controller   rematch run --kubeconfig {kubeconfig}")
        await asyncio.Event().wait()
