"""`rematch lab tournament`: plays, measures, compares, reports."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click
from tabulate import tabulate

from loadtests.progress_bar import ProgressBar
from loadtests.tools.state_folder import claimed
from loadtests.tournament.goals import goals
from loadtests.tournament.policies import find_policy, is_settings_file, policies
from loadtests.tournament.report import goal_rows, write_report
from loadtests.tournament.results import ResultFile, write_csv
from loadtests.tournament.runner import Runner, games
from loadtests.tournament.scenario import scenarios
from loadtests.tournament.summary import by_scenario, summary_lines
from reactor.errors import InputError

CHOOSE = range(1, 31)
"""Seeds by which settings are chosen."""
REPORT = range(5001, 5031)
"""Seeds of which figures are reported. Nothing is chosen by them."""


@dataclass(frozen=True, slots=True)
class TournamentOptions:
    """The command line."""

    scenarios: tuple[str, ...]
    policies: tuple[str, ...]
    seeds: str
    jobs: int
    resume: bool
    state: Path


def main(options: TournamentOptions) -> None:
    wanted = scenarios(options.scenarios)
    names = chosen_policies(options.policies)
    seeds = parse_seeds(options.seeds)
    with claimed(options.state):
        file = ResultFile(options.state / "results.jsonl")
        if not options.resume:
            file.forget()
        stopped = False
        every = games(wanted, seeds, names)
        bar = ProgressBar(time.monotonic)
        try:
            Runner(file, options.jobs, bar.show).run(every)
        except KeyboardInterrupt:
            stopped = True
            click.echo("\nstopped; what was played is kept, --resume goes on from there", err=True)
        known = file.read(wanted)
        results = [known[game.key] for game in every if game.key in known]
        write_csv(options.state / "runs.csv", results)
        if not results:
            click.echo("nothing was played yet")
            return
        for line in summary_lines(results, partial=stopped):
            click.echo(line)
        judged = goal_rows(goals(by_scenario(results)))
        click.echo("\n" + tabulate(judged, ("scenario", "goal", "verdict", "figure"), disable_numparse=True))
        click.echo(f"report: {write_report(options.state, results, wanted, options.seeds, partial=stopped)}")


def chosen_policies(names: Sequence[str]) -> list[str]:
    """Those of the project in the order of the report, then settings files."""
    for name in names:
        find_policy(name)
    known = [name for name in policies() if not names or name in names]
    return [*known, *filter(is_settings_file, names)]


def parse_seeds(text: str) -> list[int]:
    """`choose`, `report`, `A-B`, or numbers with commas."""
    if text == "choose":
        return list(CHOOSE)
    if text == "report":
        return list(REPORT)
    try:
        if "-" in text:
            low, high = map(int, text.split("-"))
            seeds = list(range(low, high + 1))
        else:
            seeds = [int(part) for part in text.split(",")]
    except ValueError:
        seeds = []
    if not seeds or min(seeds) < 0:
        raise InputError(f"--seeds {text!r}: write choose, report, A-B or numbers with commas")
    return seeds
