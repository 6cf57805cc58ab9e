"""Paired differences by seed: intervals by the bootstrap, and Holm's correction over the rivals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from loadtests.tournament.queues import Floats

DRAWS = 10_000
LEVEL = 0.05


@dataclass(frozen=True, slots=True)
class Difference:
    """Rival less ours, mean over the seeds that both played."""

    mean: float
    low: float
    high: float
    """Both bounds of the interval; with Holm's correction they hold for all rivals together."""
    seeds: int

    @property
    def width(self) -> float:
        return self.high - self.low


def difference(rival: Sequence[float], ours: Sequence[float], level: float = LEVEL) -> Difference:
    """Two-sided, each bound at `level` / 2; percentiles of the bootstrap's means. The draws are always the same."""
    gaps = np.asarray(rival, dtype=np.float64) - np.asarray(ours, dtype=np.float64)
    if not len(gaps):
        raise ValueError("no seed was played by both")
    low, high = np.quantile(_means(gaps), [level / 2, 1 - level / 2])
    return Difference(float(gaps.mean()), float(low), float(high), len(gaps))


def holm(ours: Sequence[float], rivals: Mapping[str, Sequence[float]], level: float = LEVEL) -> dict[str, Difference]:
    """By rival. The one that beats ours most clearly is judged at level / number, the next at level / (number - 1), and
    so on; a later bound is never stricter than an earlier one allows."""
    gaps = {name: np.asarray(values, dtype=np.float64) - np.asarray(ours) for name, values in rivals.items()}
    clearest = sorted(gaps, key=lambda name: _chance(gaps[name]))
    return {name: difference(rivals[name], ours, level / (len(gaps) - rank)) for rank, name in enumerate(clearest)}


def _chance(gaps: Floats) -> float:
    """How often the bootstrap's mean is not above 0: small when the rival is better."""
    return float(np.mean(_means(gaps) <= 0))


def _means(gaps: Floats) -> Floats:
    source = np.random.default_rng(20_261_117)
    drawn = source.integers(len(gaps), size=(DRAWS, len(gaps)))
    means: Floats = gaps[drawn].mean(axis=1)
    return means
