"""`python -m loadtests.chaos.soak`: constant moves and churn without faults; what controllers hold must stay flat."""

from __future__ import annotations

import asyncio
import statistics
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import click
from matplotlib.figure import Figure

from loadtests.benchmarks.plots import save
from loadtests.chaos.audit import Write
from loadtests.chaos.controllers import CONTROLLER_NAMES, ControllerProcess, store_path
from loadtests.chaos.faults import FaultKind, draw_faults
from loadtests.chaos.filled_store import fill_store
from loadtests.chaos.injection import Injector
from loadtests.chaos.moves import count_moves
from loadtests.chaos.proxy import Traffic
from loadtests.chaos.requests import Step
from loadtests.chaos.samples import MEASURES, Sample, rises, sample, trend
from loadtests.chaos.world import SETTINGS, World, open_world
from reactor.clock import SystemClock

CHURN = frozenset({FaultKind.POD_DELETED, FaultKind.OWNER_SCALED, FaultKind.OWNER_ROLLED_OUT, FaultKind.OWNER_DELETED})
_CHURN_PER_MINUTE = 6
_SAMPLE_SECONDS = 5.0
_FILLED = 0.84
"""Share of the database's bound that is filled beforehand: at 0.85 the oldest records are removed."""
_AT_THE_BOUND = b"the store has its largest size"
"""In the log of a controller, whenever it has removed the oldest records."""


@dataclass(frozen=True, slots=True)
class Soaked:
    minutes: float
    moves: int
    requests: Mapping[Step, int]
    bytes: Mapping[Step, int]
    samples: dict[str, list[Sample]]
    """By controller."""
    at_bound: dict[str, float | None]
    """By controller: after so many minutes its database had its largest size for the first time."""
    removals: dict[str, int]
    """How often its oldest records were removed since."""

    @property
    def problems(self) -> list[str]:
        late = [name for name, reached in self.at_bound.items() if reached is None or reached > self.minutes / 3]
        return [f"controller {name}: its database was not full in the first third" for name in late] + [
            f"controller {name}: {measure} rises by {rise:.1f} over the second half"
            for name, samples in self.samples.items()
            for measure, rise in rises(samples).items()
        ]


@click.command()
@click.option("--minutes", type=float, default=30.0, show_default=True)
@click.option("--seed", default=1, show_default=True)
@click.option("--controllers", type=click.IntRange(1, 2), default=1, show_default=True)
@click.option("--folder", type=click.Path(path_type=Path), help="For logs and the store. Default: temporary.")
@click.option("--report", type=click.Path(path_type=Path), help="Write the report and its plot beside this file.")
def main(minutes: float, seed: int, controllers: int, folder: Path | None, report: Path | None) -> None:
    place = folder or Path(tempfile.mkdtemp(prefix="rematch-soak-"))
    soaked = asyncio.run(soak(place, minutes, seed, controllers))
    click.echo(figures(soaked))
    if report is not None:
        plot(soaked, report.parent / "images" / "soak.svg")
        report.write_text(page(soaked))
    for problem in soaked.problems:
        click.echo(problem, err=True)
    sys.exit(bool(soaked.problems))


async def soak(folder: Path, minutes: float, seed: int, controllers: int) -> Soaked:
    seconds = minutes * 60
    bound = SETTINGS["history"]["maxBytes"]
    for name in CONTROLLER_NAMES[:controllers]:
        await fill_store(store_path(folder, name), int(bound * _FILLED), SystemClock().now())
    async with open_world(folder, controllers) as world:
        churn = draw_faults(seed, int(minutes * _CHURN_PER_MINUTE), seconds, CHURN)
        world.audit.new_writes()
        before = _traffic(world)
        await world.moving(True)
        async with asyncio.TaskGroup() as group:
            group.create_task(Injector(world).carry_out(churn, seconds))
            sampling = group.create_task(_sample(world, seconds))
            counting = group.create_task(_count(world, seconds))
            reaching = [group.create_task(_until_full(world, each, seconds)) for each in world.controllers]
        after = _traffic(world)
        await world.moving(False)
        names = [each.name for each in world.controllers]
        return Soaked(
            minutes,
            counting.result(),
            after.requests - before.requests,
            after.bytes - before.bytes,
            sampling.result(),
            at_bound={name: task.result() for name, task in zip(names, reaching, strict=True)},
            removals={each.name: each.log.read_bytes().count(_AT_THE_BOUND) for each in world.controllers},
        )


async def _until_full(world: World, controller: ControllerProcess, seconds: float) -> float | None:
    """Minutes until its database had its largest size; None when it never had."""
    began = world.clock.monotonic()
    while (at := world.clock.monotonic() - began) < seconds:
        if controller.log.exists() and _AT_THE_BOUND in controller.log.read_bytes():
            return at / 60
        await world.clock.sleep(_SAMPLE_SECONDS)
    return None


async def _sample(world: World, seconds: float) -> dict[str, list[Sample]]:
    taken: dict[str, list[Sample]] = {each.name: [] for each in world.controllers}
    began = world.clock.monotonic()
    while (at := world.clock.monotonic() - began) < seconds:
        for controller in world.controllers:
            _take(controller, at, taken[controller.name])
        await world.clock.sleep(_SAMPLE_SECONDS)
    return taken


def _take(controller: ControllerProcess, at: float, taken: list[Sample]) -> None:
    if controller.pid is not None:
        taken.append(sample(controller, controller.pid, at))


async def _count(world: World, seconds: float) -> int:
    """Reads the audit log as it grows: half an hour of it need not be in memory."""
    moves = 0
    ends = world.clock.monotonic() + seconds
    while world.clock.monotonic() < ends:
        await world.clock.sleep(_SAMPLE_SECONDS)
        writes: list[Write] = world.audit.new_writes()
        moves += count_moves(writes)
        world.observer.forget_the_gone()
    return moves


def _traffic(world: World) -> Traffic:
    """Of all controllers until now."""
    found = [controller.proxy.traffic for controller in world.controllers]
    return Traffic(sum((each.requests for each in found), Counter()), sum((each.bytes for each in found), Counter()))


def figures(soaked: Soaked) -> str:
    moves = max(1, soaked.moves)
    return (
        f"{soaked.moves} moves in {soaked.minutes:g} minutes: {soaked.moves / soaked.minutes:.0f} per minute,"
        f" {sum(soaked.requests.values()) / moves:.1f} API calls and"
        f" {sum(soaked.bytes.values()) / moves / 1024:.0f} KiB per move"
        " (watches, lists and metrics included)"
    )


def plot(soaked: Soaked, path: Path) -> None:
    figure = Figure(figsize=(9, 2 * len(MEASURES)), layout="constrained")
    for axes, measure in zip(figure.subplots(len(MEASURES), 1, sharex=True), MEASURES, strict=True):
        for name, samples in soaked.samples.items():
            axes.plot([each.at / 60 for each in samples], [getattr(each, measure) for each in samples], label=name)
        axes.set_ylabel(measure.replace("_mib", ", MiB"))
        axes.set_ylim(bottom=0)
        axes.grid(alpha=0.3)
    figure.axes[-1].set_xlabel("minutes")
    save(figure, path)


def page(soaked: Soaked) -> str:
    lines = [
        "# Soak\n",
        "`make soak [MINUTES=30]` writes this page: pods are moved all the time, and somebody deletes pods, scales,",
        "rolls out and deletes workloads, on a real control plane with scripted nodes. What a controller holds must be",
        "flat over the second half. The store is filled beforehand, so that it has its largest size",
        f"(`history.maxBytes`: {SETTINGS['history']['maxBytes'] / 2**20:g} MiB) in the first third.\n",
        f"{figures(soaked)}.\n",
        *(_fullness(soaked, name) for name in soaked.samples),
        "![memory, files, threads, tasks and database over time](images/soak.svg)\n",
        "| controller | measure | mean of the second half | trend over it | flat |",
        "|---|---|---|---|---|",
    ]
    for name, samples in soaked.samples.items():
        lines += [_row(name, measure, samples) for measure in MEASURES]
    lines += ["\n| requests | per move | KiB per move |", "|---|---|---|"]
    most_first = sorted(soaked.requests, key=lambda step: -soaked.requests[step])
    lines += [_traffic_row(soaked, step) for step in most_first]
    return "\n".join(lines) + "\n"


def _traffic_row(soaked: Soaked, step: Step) -> str:
    moves = max(1, soaked.moves)
    return f"| {step.value} | {soaked.requests[step] / moves:.1f} | {soaked.bytes.get(step, 0) / moves / 1024:.1f} |"


def _fullness(soaked: Soaked, name: str) -> str:
    reached = soaked.at_bound[name]
    when = "never" if reached is None else f"after {reached:.1f} minutes"
    text = f"The database of controller {name} had its largest size {when}; its oldest records were removed"
    return f"{text} {soaked.removals[name]} times.\n"


def _row(name: str, measure: str, samples: Sequence[Sample]) -> str:
    half = samples[len(samples) // 2 :]
    values = [getattr(each, measure) for each in half]
    rise = trend([each.at for each in half], values)
    flat = "no" if measure in rises(samples) else "yes"
    label = measure.replace("_mib", ", MiB")
    return f"| {name} | {label} | {statistics.fmean(values):.1f} | {rise:+.2f} | {flat} |"


if __name__ == "__main__":
    main()
