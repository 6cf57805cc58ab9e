"""`rematch lab experiment genetic`: the check dictionary, even loads, weights, and what the search costs."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from loadtests.experiments.ending import Ending
from loadtests.experiments.genetic.design import draw_pods
from loadtests.experiments.genetic.lab import kube_scheduler
from loadtests.experiments.genetic.outcome import Outcome, outcome
from loadtests.experiments.genetic.report import DATA, write_report
from loadtests.progress_bar import Progress, ProgressBar
from loadtests.record_file import RecordFile
from loadtests.small_clusters import Curve, curve, mean_curves
from loadtests.tools.state_folder import claimed
from reactor.cli.stopping import until_stopped

_CURVES = [(seed, dictionary) for seed in range(8) for dictionary in (False, True)]
_SECONDS = 1.0
"""Of one workload or curve on two idle cores; only the first estimate of the time left is made with it."""


@dataclass(frozen=True, slots=True)
class GeneticOptions:
    seeds: int
    resume: bool
    state: Path
    copy_to: Path | None


@dataclass(frozen=True, slots=True)
class Kept:
    """What was run, on disk."""

    outcomes: RecordFile[Outcome]
    curves: RecordFile[Curve]

    @classmethod
    def of(cls, options: GeneticOptions) -> Kept:
        kept = cls(
            RecordFile(options.state / "outcomes.jsonl", Outcome), RecordFile(options.state / "curves.jsonl", Curve)
        )
        if not options.resume:
            kept.outcomes.forget()
            kept.curves.forget()
        return kept

    def report(self, options: GeneticOptions, *, partial: bool) -> Path:
        outcomes = sorted(self.outcomes.read(), key=lambda each: each.seed)[: options.seeds]
        return write_report(options.state, outcomes, mean_curves(self.curves.read()), partial=partial)


def main(options: GeneticOptions) -> None:
    with claimed(options.state):
        kept = Kept.of(options)
        stopped = asyncio.run(until_stopped(_run(options, kept)))
        ending = Ending(options.state, options.copy_to, DATA)
        ending.report(lambda partial: kept.report(options, partial=partial), stopped=stopped)


async def _run(options: GeneticOptions, kept: Kept) -> None:
    known, drawn = ({each.seed for each in kept.outcomes.read()}, {each.key for each in kept.curves.read()})
    seeds = [seed for seed in range(1, options.seeds + 1) if seed not in known]
    curves = [each for each in _CURVES if each not in drawn]
    of = options.seeds + len(_CURVES)
    steps = count(of - len(seeds) - len(curves))
    bar = ProgressBar(time.monotonic, expected=_SECONDS * of)
    bar.show(Progress(next(steps), of, "kube-scheduler"))
    if seeds:
        async with kube_scheduler(options.state / "lab") as place:
            for seed in seeds:
                kept.outcomes.add(outcome(seed, await place(draw_pods(seed))))
                bar.show(Progress(next(steps), of, f"workload {seed}"))
    for seed, dictionary in curves:
        await asyncio.sleep(0)  # a search of seconds does not give way by itself
        kept.curves.add(curve(seed, dictionary=dictionary))
        bar.show(Progress(next(steps), of, f"search {seed} {'with' if dictionary else 'without'} the dictionary"))
