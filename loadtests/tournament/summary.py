"""The means of a tournament as a table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from statistics import fmean

from tabulate import tabulate

from loadtests.tournament.results import Result

HEADERS = (
    "policy",
    "availability",
    "unhappy pod-min",
    "moves",
    "lost to moves",
    "useless",
    "harmful",
    "twice",
    "cured",
    "first move s",
    "cpu s",
)


def by_scenario(results: Sequence[Result]) -> dict[str, dict[str, list[Result]]]:
    found: dict[str, dict[str, list[Result]]] = {}
    for each in results:
        found.setdefault(each.scenario, {}).setdefault(each.policy, []).append(each)
    return {
        scenario: {name: sorted(runs, key=lambda run: run.seed) for name, runs in played.items()}
        for scenario, played in found.items()
    }


def summary_lines(results: Sequence[Result], *, partial: bool) -> Iterator[str]:
    if partial:
        yield "partial: only what was played so far"
    for scenario, played in by_scenario(results).items():
        yield f"\n{scenario} ({max(map(len, played.values()))} seeds, means per run)"
        yield tabulate([row(policy, runs) for policy, runs in played.items()], HEADERS, disable_numparse=True)


def row(policy: str, runs: Sequence[Result]) -> list[str]:
    each = [result.measures for result in runs]
    return [
        policy,
        f"{fmean(one.availability for one in each):.4f}",
        f"{fmean(one.unhappy_minutes for one in each):.1f}",
        f"{fmean(one.moves for one in each):.2f}",
        f"{fmean(one.lost_to_moves for one in each):.0f}",
        f"{fmean(one.useless for one in each):.2f}",
        f"{fmean(one.harmful for one in each):.2f}",
        f"{fmean(one.twice for one in each):.2f}",
        f"{fmean(one.cured for one in each):.2f}",
        _first(one.first_move for one in each),
        f"{fmean(one.cpu_seconds for one in each):.2f}",
    ]


def _first(moves: Iterable[float | None]) -> str:
    """From the first failed probe; negative where a policy moves before anything fails."""
    known = [each for each in moves if each is not None]
    return f"{fmean(known):.0f}" if known else "-"
