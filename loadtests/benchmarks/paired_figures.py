"""Figures of two versions, measured in pairs: ratios with their spread, and a verdict for each. Less is better."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import median

from loadtests.paired_statistics import paired_interval
from reactor.cli.output import table

LEAST_EFFECT = 0.02
"""A difference below this share is noise, however often it was seen: code and data land elsewhere in memory."""
_LEAST_ROUNDS = 3

Figures = Mapping[str, float]
"""By name, of one measurement of one version."""


class FigureVerdict(StrEnum):
    BETTER = "better"
    NOISE = "within noise"
    WORSE = "worse"
    TOO_FEW = "too few rounds"


@dataclass(frozen=True, slots=True)
class Pair:
    """One round: the same figure of both versions, measured one right after the other."""

    old: float
    new: float


@dataclass(frozen=True, slots=True)
class FigureComparison:
    name: str
    pairs: tuple[Pair, ...]

    @property
    def old(self) -> float:
        return median(pair.old for pair in self.pairs)

    @property
    def new(self) -> float:
        return median(pair.new for pair in self.pairs)

    @property
    def ratios(self) -> list[float]:
        """New over old, round by round: what disturbs the machine for longer than a round disturbs both."""
        return [pair.new / pair.old for pair in self.pairs]

    @property
    def ratio(self) -> float:
        return median(self.ratios)

    @property
    def interval(self) -> tuple[float, float] | None:
        """Of the mean ratio (95 %, Student's t on the logarithms)."""
        if len(self.pairs) < _LEAST_ROUNDS:
            return None
        found = paired_interval([math.log(ratio) for ratio in self.ratios])
        return math.exp(found.low), math.exp(found.high)

    @property
    def verdict(self) -> FigureVerdict:
        interval = self.interval
        if interval is None:
            return FigureVerdict.TOO_FEW
        low, high = interval
        if high < 1 and self.ratio < 1 - LEAST_EFFECT:
            return FigureVerdict.BETTER
        return FigureVerdict.WORSE if low > 1 and self.ratio > 1 + LEAST_EFFECT else FigureVerdict.NOISE

    def as_json(self) -> dict[str, object]:
        return {
            "figure": self.name,
            "old": self.old,
            "new": self.new,
            "ratio": self.ratio,
            "ratios": self.ratios,
            "interval": self.interval,
            "verdict": self.verdict.value,
        }


def compare(rounds: Sequence[tuple[Figures, Figures]]) -> list[FigureComparison]:
    """`rounds` are (old, new); a figure that one of them lacks or that is 0 has no ratio and is left out."""
    names = dict.fromkeys(name for old, new in rounds for name in old if name in new)
    pairs = {
        name: tuple(
            Pair(old[name], new[name]) for old, new in rounds if old.get(name, 0.0) > 0 and new.get(name, 0.0) > 0
        )
        for name in names
    }
    return [FigureComparison(name, found) for name, found in pairs.items() if found]


def as_table(comparisons: Sequence[FigureComparison]) -> str:
    header = ("figure", "old", "new", "new/old", "min .. max", "95 % interval", "verdict")
    return table(header, [_row(comparison) for comparison in comparisons])


def _row(one: FigureComparison) -> tuple[str, ...]:
    interval = one.interval
    return (
        one.name,
        f"{one.old:.4g}",
        f"{one.new:.4g}",
        f"{one.ratio:.3f}",
        f"{min(one.ratios):.3f} .. {max(one.ratios):.3f}",
        f"{interval[0]:.3f} .. {interval[1]:.3f}" if interval is not None else "-",
        one.verdict.value,
    )
