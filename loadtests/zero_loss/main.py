"""`rematch lab zero-loss`: the lab, the ways one after the other, the report."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from loadtests.nodes import KubeletPace, LabNodeSpec, LabOptions, real_nodes
from loadtests.zero_loss.design import APPS, Way
from loadtests.zero_loss.report import text_table, write_report
from loadtests.zero_loss.run import Bench, Measured, measure
from reactor.cli.stopping import until_stopped

NODES = tuple(LabNodeSpec(f"node{number}", 500) for number in (1, 2, 3))


@dataclass(frozen=True, slots=True)
class ZeroLossOptions:
    moves: int
    rate: float
    ways: tuple[str, ...]
    state: Path
    copy_to: Path | None


def main(options: ZeroLossOptions) -> None:
    asyncio.run(until_stopped(_run(options)))


async def _run(options: ZeroLossOptions) -> None:
    ways = [Way(name) for name in options.ways] or list(Way)
    measured: list[Measured] = []
    async with real_nodes(LabOptions(NODES, pace=KubeletPace(housekeeping=2))) as lab:
        with tempfile.TemporaryDirectory(prefix="rematch-zero-loss-") as folder:
            async with Bench.open(lab, [node.name for node in NODES], APPS, Path(folder)) as bench:
                for way in ways:
                    measured.append(await measure(bench, way, options.moves, options.rate, _tell))
                    _write(measured, options)
    click.echo(text_table([each for one in measured for each in one.rows]))


def _write(measured: Sequence[Measured], options: ZeroLossOptions) -> None:
    """After every way, so that an interrupted run leaves what it has measured."""
    for folder in (options.state, options.copy_to):
        if folder is not None:
            write_report(measured, options.rate, folder)


def _tell(line: str) -> None:
    click.echo(line, err=True)
