"""`python -m loadtests.chaos`: rounds of faults until there were enough, then the report."""

from __future__ import annotations

import asyncio
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from loadtests.chaos.faults import KILLS, FaultKind
from loadtests.chaos.kept_rounds import keep, kept
from loadtests.chaos.report import kills, write_report
from loadtests.chaos.rounds import RoundPlan, RoundResult, run_round
from loadtests.chaos.world import open_world
from loadtests.chaos.write_kinds import WriteKind

_MOST_SHOWN = 12
_MOST_EXTRA = 1.3
"""Kinds that lack are waited for until there were so many times the faults that were asked for."""
_COMMAND = "make chaos SEED={seed} ROUNDS=1 LEASE={lease:g}"


@dataclass(frozen=True, slots=True)
class Request:
    seed: int
    faults: int
    rounds: int | None
    only: frozenset[FaultKind]
    minimum: int
    """Of each kind of fault."""
    kills: int
    """At each step and moment, at least."""
    controllers: int
    folder: Path
    report: Path | None


def _kinds(_context: click.Context, _parameter: click.Parameter, text: str) -> frozenset[FaultKind]:
    try:
        return frozenset(FaultKind(word) for word in text.split(",") if word)
    except ValueError as error:
        raise click.BadParameter(f"{error}; the kinds are {', '.join(FaultKind)}") from None


@click.command()
@click.option("--seed", default=1, show_default=True, help="Of the first round; each further round takes the next.")
@click.option("--faults", default=1000, show_default=True, help="Rounds are added until so many faults happened.")
@click.option("--rounds", type=int, help="So many rounds instead.")
@click.option("--only", default="", callback=_kinds, help="Only faults of these kinds, separated by commas.")
@click.option("--minimum", default=5, show_default=True, help="Further rounds until every kind happened so often.")
@click.option(
    "--kills", default=1, show_default=True, help="Further rounds until so many kills hit every step at every moment."
)
@click.option("--controllers", type=click.IntRange(1, 2), default=2, show_default=True)
@click.option(
    "--folder",
    type=click.Path(path_type=Path),
    help="For logs and rounds; kept, and added up by later runs. Default: temporary.",
)
@click.option("--report", type=click.Path(path_type=Path), help="Write the report to this file.")
def main(folder: Path | None, **options: object) -> None:
    place = folder or Path(tempfile.mkdtemp(prefix="rematch-chaos-"))
    request = Request(folder=place, **options)  # type: ignore[arg-type]
    results = asyncio.run(run(request))
    failed = [result for result in results if result.violations]
    lacking = _lacking(request, results)
    if lacking and request.rounds is None:
        click.echo(f"happened too seldom: {', '.join(lacking)}", err=True)
    if failed:
        click.echo(f"logs and audit log are in {place}", err=True)
    elif folder is None:
        shutil.rmtree(place, ignore_errors=True)
    sys.exit(bool(failed or (lacking and request.rounds is None)))


async def run(request: Request) -> list[RoundResult]:
    """With the rounds of earlier runs in the same folder."""
    results = [] if request.rounds is not None else kept(request.folder)
    async with open_world(request.folder / f"from-{_next_seed(request, results)}", request.controllers) as world:
        while not _enough(request, results):
            plan = RoundPlan(_next_seed(request, results), only=request.only)
            results.append(await run_round(world, plan))
            _show(results)
            keep(request.folder, results[-1])
            if request.report is not None:
                write_report(request.report, results)
    return results


def _next_seed(request: Request, results: Sequence[RoundResult]) -> int:
    return max([request.seed - 1, *(result.plan.seed for result in results)]) + 1


def _enough(request: Request, results: Sequence[RoundResult]) -> bool:
    if request.rounds is not None:
        return len(results) >= request.rounds
    return _total(results).total() >= request.faults * (_MOST_EXTRA if _lacking(request, results) else 1)


def _lacking(request: Request, results: Sequence[RoundResult]) -> list[str]:
    """Kinds of faults, and steps at which kills happened, that are below their minimum."""
    total = _total(results)
    few = [kind.value for kind in request.only or FaultKind if total[kind] < request.minimum]
    if request.only and not request.only & KILLS:
        return few
    hit = kills(results)
    moments = [kind for kind in FaultKind if kind in KILLS]
    return few + [
        f"{kind.value} at {write.value}" for write in WriteKind for kind in moments if hit[write, kind] < request.kills
    ]


def _total(results: Sequence[RoundResult]) -> Counter[FaultKind]:
    return sum((result.injected for result in results), Counter())


def _show(results: Sequence[RoundResult]) -> None:
    last = results[-1]
    total = _total(results)
    click.echo(
        f"seed {last.plan.seed}: {last.injected.total()} faults, {last.moves} moves, settled in"
        f" {last.settled_seconds:.1f} s, {len(last.violations)} violations;"
        f" {total.total()} faults, {kills(results).total()} of them kills at a step so far"
    )
    for violation in last.violations[:_MOST_SHOWN]:
        click.echo(f"  {violation.invariant}: {violation.text}", err=True)
    if len(last.violations) > _MOST_SHOWN:
        click.echo(f"  and {len(last.violations) - _MOST_SHOWN} more in round-{last.plan.seed}.json", err=True)
    if last.violations:
        click.echo(f"  again: {_COMMAND.format(seed=last.plan.seed, lease=last.lease)}", err=True)


if __name__ == "__main__":
    main()
