"""An arm against the default placement over a range of steps, pair by pair, and which seeds are fit to be counted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from statistics import fmean

from loadtests.demo.compare import Interval
from loadtests.experiment.design import FROZEN_AT, Arm, Phase, Step
from loadtests.experiment.statistics import Results, interval_of

LEAST_VALID = Fraction(2, 3)
"""Of a seed's pairs of steps; a mean over fewer would be that of another range."""


@dataclass(frozen=True, slots=True)
class Comparison:
    differences: Mapping[int, float]
    """Mean over the valid pairs of steps, by seed; only seeds that count."""
    seeds: int
    """That were measured, counted or not."""
    pairs: int
    """Of steps that are valid in both arms, of the seeds that count."""
    possible: int
    moved: bool
    """Whether the differences may come from moves."""

    @property
    def interval(self) -> Interval | None:
        return interval_of(self.differences.values())

    def told(self) -> str:
        number = len(self.differences)
        if not number:
            return f"none of {_seeds(self.seeds)} counts"
        over = _seeds(number) if number == self.seeds else f"{number} of {_seeds(self.seeds)}"
        return f"{self._figures()} over {over}, {self.pairs} of {self.possible} pairs of steps valid"

    def _figures(self) -> str:
        """Nothing but zeros is no finding about moves when there were none."""
        if not self.moved and not any(self.differences.values()):
            return "no move was made: no difference"
        mean = f"mean difference {fmean(self.differences.values()):+.4f}"
        interval = self.interval
        return f"{mean}, 95 % interval {interval.low:+.4f} .. {interval.high:+.4f}" if interval else mean


def compare(results: Results, arm: Arm, steps: Sequence[Step]) -> Comparison:
    seeds = results.seeds(arm)
    by_seed = {seed: _pairs(results, arm, seed, steps) for seed in sorted(seeds)}
    counted = {seed: pairs for seed, pairs in by_seed.items() if _counts(results, arm, seed, steps, pairs)}
    return Comparison(
        differences={seed: fmean(pairs.values()) for seed, pairs in counted.items()},
        seeds=len(seeds),
        pairs=sum(map(len, counted.values())),
        possible=len(counted) * len(steps),
        moved=_moved(results, arm, steps),
    )


def _pairs(results: Results, arm: Arm, seed: int, steps: Sequence[Step]) -> dict[int, float]:
    """By rate."""
    found = {step.paper_rate: results.differences(arm, step) for step in steps}
    return {rate: differences[seed] for rate, differences in found.items() if seed in differences}


def _counts(results: Results, arm: Arm, seed: int, steps: Sequence[Step], pairs: Mapping[int, float]) -> bool:
    """Enough of its pairs are valid, and none that a move ended in is left out: moves cost, and would look free.

    A step that was not measured may have held a move.
    """
    without_move = {record.paper_rate for record in results.measured(arm) if record.seed == seed and not record.moves}
    left_out = {step.paper_rate for step in steps} - set(pairs)
    return bool(pairs) and len(pairs) >= LEAST_VALID * len(steps) and left_out <= without_move


def _moved(results: Results, arm: Arm, steps: Sequence[Step]) -> bool:
    """Whether the live run made a move that these steps could show; a frozen placement is what it had at one step."""
    last = FROZEN_AT if arm.phase is Phase.FROZEN else max((step.paper_rate for step in steps), default=0)
    live = results.measured(Arm(Phase.LIVE, arm.planner, arm.threshold))
    return any(record.moves for record in live if record.paper_rate <= last)


def _seeds(number: int) -> str:
    return "1 seed" if number == 1 else f"{number} seeds"
