"""`rematch lab compare`: the two arms over several seeds, and whether the difference is more than chance."""

from __future__ import annotations

import asyncio
import json
import math
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import click

from loadtests.demo.arm import ArmSpec, free_port, run_arm
from loadtests.demo.main import arm_document, seconds
from loadtests.demo.scenario import stable_scenario
from loadtests.demo.state_folder import claimed
from reactor.clock import SystemClock
from reactor.settings.model import Mode, Settings

STUDENT_95 = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131)
"""Two-sided 95 % quantiles of Student's t for 1 to 15 degrees of freedom; above that 2.09 is on the safe side to 20."""
MEASURES = (("availability", 1.0), ("p95Ms", -1.0))
"""(key, +1 when more is better)."""


@dataclass(frozen=True, slots=True)
class Interval:
    """Of the mean paired difference, rematch less default."""

    mean: float
    low: float
    high: float

    def favours(self, sign: float) -> bool:
        return self.low > 0 if sign > 0 else self.high < 0


def paired_interval(differences: list[float]) -> Interval:
    number = len(differences)
    quantile = STUDENT_95[number - 2] if number - 2 < len(STUDENT_95) else 2.09
    mean = fmean(differences)
    half = quantile * stdev(differences) / math.sqrt(number)
    return Interval(mean, mean - half, mean + half)


def main(seeds: int, duration: str, output: str, state: Path) -> None:
    with claimed(state):
        rows = asyncio.run(_run(seeds, seconds(duration, 60.0), state))
    intervals = {
        key: paired_interval([row["rematch"][key] - row["default"][key] for row in rows]) for key, _ in MEASURES
    }
    if output == "json":
        shown = {key: {"mean": one.mean, "low": one.low, "high": one.high} for key, one in intervals.items()}
        click.echo(json.dumps({"seeds": rows, "intervals": shown}, indent=2))
        return
    click.echo(_report(rows, intervals, markdown=output == "markdown"))


async def _run(seeds: int, duration: float, state: Path) -> list[dict[str, Any]]:
    rows = []
    for seed in range(1, seeds + 1):
        row: dict[str, Any] = {"seed": seed}
        for name, mode in (("default", Mode.OBSERVE), ("rematch", Mode.ACT)):
            click.echo(f"seed {seed} of {seeds}, arm {name}: {duration:g} s ...", err=True)
            spec = ArmSpec(stable_scenario(seed, duration), mode, Settings().happiness.threshold, state, free_port())
            row[name] = arm_document(await run_arm(spec, SystemClock()))
            row[name].pop("happiness")
        rows.append(row)
    return rows


def _report(rows: list[dict[str, Any]], intervals: dict[str, Interval], *, markdown: bool) -> str:
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
        for arm in ("default", "rematch")
    ]
    text = tabulate(cells, headers=headers, tablefmt="github" if markdown else "plain", disable_numparse=True)
    for key, sign in MEASURES:
        one = intervals[key]
        verdict = "in favour of rematch" if one.favours(sign) else "no clear difference"
        text += (
            f"\n\n{key}: mean difference {one.mean:+.4g}, 95 % interval {one.low:+.4g} .. {one.high:+.4g}: {verdict}"
        )
    return text
