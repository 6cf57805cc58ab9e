"""The means of a tournament as a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean

from tabulate import tabulate

from loadtests.tournament.results import Result

_HEADERS = ("policy", "availability", "unhappy min", "moves", "lost", "useless", "harmful", "twice", "cured", "cpu s")


def by_scenario(results: Sequence[Result]) -> dict[str, dict[str, list[Result]]]:
    found: dict[str, dict[str, list[Result]]] = {}
    for each in results:
        found.setdefault(each.scenario, {}).setdefault(each.policy, []).append(each)
    return found


def summary_lines(results: Sequence[Result], *, partial: bool) -> Iterator[str]:
    if partial:
        yield "partial: only what was played so far"
    for scenario, played in by_scenario(results).items():
        yield f"\n{scenario} ({max(map(len, played.values()))} seeds, means per run)"
        yield tabulate([_row(policy, runs) for policy, runs in played.items()], _HEADERS, disable_numparse=True)


def _row(policy: str, runs: Sequence[Result]) -> list[str]:
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
        f"{fmean(one.cpu_seconds for one in each):.2f}",
    ]
