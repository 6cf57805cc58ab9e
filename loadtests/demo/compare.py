"""`rematch lab compare`: the two arms over several seeds, and whether the difference is more than chance."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from loadtests.demo.arm import ArmSpec, run_arm
from loadtests.demo.main import arm_document
from loadtests.demo.scenario import stable_scenario
from loadtests.paired_statistics import Interval, paired_interval
from loadtests.tools.ports import free_port
from loadtests.tools.state_folder import claimed
from reactor.clock import SystemClock
from reactor.settings.model import Mode, Settings

MEASURES = (("availability", 1.0), ("p95Ms", -1.0))
"""(key, +1 when more is better)."""
ARMS = {"default": Mode.OBSERVE, "rematch": Mode.ACT}


@dataclass(frozen=True, slots=True)
class Comparison:
    seeds: int
    seconds: float
    arms: tuple[str, ...]
    busy: int
    """Processes that compute all the time beside it."""


def main(comparison: Comparison, output: str, state: Path) -> None:
    with claimed(state), _busy(comparison.busy):
        rows = asyncio.run(_run(comparison, state))
    intervals = {}
    if len(comparison.arms) == len(ARMS):
        intervals = {
            key: paired_interval([row["rematch"][key] - row["default"][key] for row in rows]) for key, _ in MEASURES
        }
    if output == "json":
        shown = {key: {"mean": one.mean, "low": one.low, "high": one.high} for key, one in intervals.items()}
        click.echo(json.dumps({"seeds": rows, "intervals": shown}, indent=2))
        return
    click.echo(_report(rows, intervals, markdown=output == "markdown"))


@contextmanager
def _busy(processes: int) -> Iterator[None]:
    started = [multiprocessing.get_context("spawn").Process(target=_compute, daemon=True) for _ in range(processes)]
    for process in started:
        process.start()
    try:
        yield
    finally:
        for process in started:
            process.kill()
            process.join()


def _compute() -> None:
    while True:
        pass


async def _run(comparison: Comparison, state: Path) -> list[dict[str, Any]]:
    rows = []
    for seed in range(1, comparison.seeds + 1):
        row: dict[str, Any] = {"seed": seed}
        for name in comparison.arms:
            click.echo(f"seed {seed} of {comparison.seeds}, arm {name}: {comparison.seconds:g} s ...", err=True)
            scenario = stable_scenario(seed, comparison.seconds)
            spec = ArmSpec(scenario, ARMS[name], Settings().happiness.threshold, state, free_port())
            row[name] = arm_document(await run_arm(spec, SystemClock()))
            row[name].pop("happiness")
        rows.append(row)
    return rows


def _report(rows: list[dict[str, Any]], intervals: Mapping[str, Interval], *, markdown: bool) -> str:
    from tabulate import tabulate

    headers = ("seed", "arm", "requests", "availability", "p50 ms", "p95 ms", "p99 ms", "rematches", "moves")
    cells = [
        (
            row["seed"],
            arm,
            row[arm]["requests"],
            f"{row[arm]['availability']:.4f}",
            *(f"{row[arm][key]:.0f}" for key in ("p50Ms", "p95Ms", "p99Ms")),
            row[arm]["rematches"],
            row[arm]["moves"],
        )
        for row in rows
        for arm in ARMS
        if arm in row
    ]
    text = tabulate(cells, headers=headers, tablefmt="github" if markdown else "plain", disable_numparse=True)
    for key, sign in MEASURES:
        if (one := intervals.get(key)) is None:
            continue
        text += (
            f"\n\n{key}: mean difference {one.mean:+.4g}, 95 % interval {one.low:+.4g} .. {one.high:+.4g}:"
            f" {verdict(one, sign)}"
        )
    return text


def verdict(interval: Interval, sign: float) -> str:
    if interval.favours(sign):
        return "in favour of rematch"
    return "against rematch" if interval.favours(-sign) else "no clear difference"
