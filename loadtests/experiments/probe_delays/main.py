"""`python -m loadtests.experiments.probe_delays.main`: the table of docs/causes.md, minutes on two idle cores.

Results are kept case by case in the state folder, so that a run that was stopped goes on where it was.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import click

from loadtests.experiments.probe_delays.healthy import BUSY, LOADS, Needless, needless_moves
from loadtests.experiments.probe_delays.starved import Starvation, starve
from reactor.record.logs import configure_logs
from reactor.settings.model import Settings
from storage.limits import Limits
from storage.store import Store

PERIODS = (1, 2, 5, 10)
RATES = (0.001, 0.01)
ACT = {
    "mode": "act",
    "managed": {"namespaces": ["shop"]},
    "execution": {"strategies": ["evict"], "evictSingleReplicas": True},
}
"""The defaults, but the pods are single replicas that may be evicted."""


class Results:
    """One JSON file per case."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def starved(self, period: int, seed: int) -> Path:
        return self._folder / f"starved-{period}-{seed}.json"

    def healthy(self, period: int, rate: float, kind: str) -> Path:
        return self._folder / f"{kind}-{period}-{rate:g}.json"


@click.command()
@click.option("--state", type=click.Path(path_type=Path), default=Path(".lab/probe-delays"), show_default=True)
@click.option("--seeds", default=10, show_default=True, help="Of the starved node.")
@click.option("--first-seed", default=101, show_default=True, help="The constants were chosen with seeds 1 to 3.")
@click.option("--pod-days", default=5000, show_default=True, help="Of healthy pods at 0.1 %; a tenth of it at 1 %.")
def main(state: Path, seeds: int, first_seed: int, pod_days: int) -> None:
    configure_logs(level="error", json=False, stream=sys.stderr)
    results, settings = Results(state), Settings.model_validate(ACT)
    numbers = range(first_seed, first_seed + seeds)
    for rate in RATES:
        for period in reversed(PERIODS):
            days = pod_days if rate == RATES[0] else pod_days // 10
            for kind, loads, number in (("healthy", tuple(LOADS), days), ("busy", BUSY, days // 20)):
                path = results.healthy(period, rate, kind)
                if not path.exists():
                    click.echo(f"{kind}, period {period} s, {rate:.1%} of the probes fail", err=True)
                    found = needless_moves(period, rate, number, first_seed, settings, loads)
                    path.write_text(json.dumps(asdict(found)))
    asyncio.run(_starved(results, numbers, settings))
    click.echo(table(results, numbers))


async def _starved(results: Results, seeds: Sequence[int], settings: Settings) -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with await Store.open(Path(folder) / "rows.db", Limits(flush_seconds=3600.0)) as store:
            for period in PERIODS:
                for seed in seeds:
                    path = results.starved(period, seed)
                    if not path.exists():
                        click.echo(f"starved node, period {period} s, seed {seed}", err=True)
                        path.write_text(json.dumps(asdict(await starve(seed, period, store, settings))))


def table(results: Results, seeds: Sequence[int]) -> str:
    """Markdown."""
    lines = [
        "| probe period | first failed probe to the move: p50 | p95 | moved before the second kill "
        "| needless moves per 100 healthy pod-days, 0.1 % | 1 % |",
        "|---|---|---|---|---|---|",
    ]
    lines += [_row(results, period, seeds) for period in PERIODS]
    loads = (*LOADS, *BUSY)
    lines += ["", "| probe period | probes that fail | " + " | ".join(f"at {load:.0%} load" for load in loads) + " |"]
    lines += ["|---" * (2 + len(loads)) + "|"]
    for rate in RATES:
        for period in PERIODS:
            healthy, busy = (_read(results, period, rate, kind) for kind in ("healthy", "busy"))
            found = [healthy.per_100_pod_days(load) for load in LOADS] + [busy.per_100_pod_days(load) for load in BUSY]
            lines.append(f"| {period} s | {rate:.1%} | " + " | ".join(f"{each:.2f}" for each in found) + " |")
    return "\n".join(lines)


def _row(results: Results, period: int, seeds: Sequence[int]) -> str:
    runs = [Starvation(**json.loads(results.starved(period, seed).read_text())) for seed in seeds]
    delays = sorted(run.move for run in runs if run.move is not None)
    in_time = sum(run.move is not None and run.second_kill is None for run in runs)
    p50, p95 = (f"{delays[min(len(delays) - 1, int(share * len(delays)))]:.1f} s" for share in (0.5, 0.95))
    needless = " | ".join(f"{_read(results, period, rate, 'healthy').in_the_mixture:.3f}" for rate in RATES)
    return f"| {period} s | {p50} | {p95} | {in_time} of {len(runs)} | {needless} |"


def _read(results: Results, period: int, rate: float, kind: str) -> Needless:
    found = json.loads(results.healthy(period, rate, kind).read_text())
    return Needless(found["pod_days"], {float(load): moves for load, moves in found["moves"].items()})


if __name__ == "__main__":
    main()
