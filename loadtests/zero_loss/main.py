"""`rematch lab zero-loss`: the lab, the ways one after the other, the report."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path

import click

from loadtests.nodes import KubeletPace, LabNodeSpec, LabOptions, real_nodes
from loadtests.zero_loss.bench import Bench
from loadtests.zero_loss.design import APPS, Way
from loadtests.zero_loss.report import (
    add_failed,
    add_moves,
    forget_details,
    rows_in,
    text_table,
    together,
    write_report,
)
from loadtests.zero_loss.results import Row
from loadtests.zero_loss.run import Measured, measure, moves_left
from reactor.cli.stopping import until_stopped
from reactor.errors import RematchError

NODES = tuple(LabNodeSpec(f"node{number}", 500) for number in (1, 2, 3))


@dataclass(frozen=True, slots=True)
class ZeroLossOptions:
    moves: int
    """Of each pod, in the way *chosen*."""
    moves_beside: int
    """In each other way."""
    rate: float
    ways: tuple[str, ...]
    resume: bool
    state: Path
    copy_to: Path | None

    @property
    def folders(self) -> tuple[Path, ...]:
        return (self.state,) if self.copy_to is None else (self.state, self.copy_to)

    def moves_in(self, way: Way) -> int:
        return self.moves if way is Way.CHOSEN else self.moves_beside


def main(options: ZeroLossOptions) -> None:
    if asyncio.run(until_stopped(_run(options))):
        click.echo("stopped; --resume goes on with what was measured", err=True)


async def _run(options: ZeroLossOptions) -> None:
    ways = [Way(name) for name in options.ways] or list(Way)
    total = Total(options, [each for each in rows_in(options.state) if options.resume and each.way in set(ways)])
    logs = options.state / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    for folder in () if options.resume else options.folders:
        forget_details(ways, folder)
    failed: list[str] = []
    async with (
        real_nodes(LabOptions(NODES, pace=KubeletPace(housekeeping=2))) as lab,
        Bench.open(lab, [node.name for node in NODES], APPS, logs) as bench,
    ):
        for way in ways:
            left = moves_left(APPS, options.moves_in(way), way, total.measured.rows)
            try:
                await measure(bench, way, left, options.rate, total.add, _tell)
            except RematchError as error:
                if _stopped():
                    raise
                failed.append(f"{way}: {error}")
                _tell(f"{way} ended early: {error}")
    click.echo(text_table(total.measured.rows))
    if failed:
        raise RematchError("; ".join(failed))


def _stopped() -> bool:
    """By Ctrl-C: an error while the apps are removed does not mean that the next way is to follow."""
    task = asyncio.current_task()
    return task is not None and bool(task.cancelling())


@dataclass(slots=True)
class Total:
    """What was measured, leg by leg; written after each, so that an interrupted run leaves it."""

    options: ZeroLossOptions
    earlier: list[Row]
    measured: Measured = field(init=False)

    def __post_init__(self) -> None:
        self.measured = Measured(rows=self.earlier)

    def add(self, leg: Measured) -> None:
        measured = self.measured
        measured.rows = together(measured.rows, leg.rows)
        measured.problems += leg.problems
        for folder in self.options.folders:
            write_report(measured, self.options.rate, folder)
            add_moves(leg, folder)
        add_failed(leg, self.options.state)
        _tell(text_table(measured.rows))


def _tell(line: str) -> None:
    click.echo(line, err=True)
