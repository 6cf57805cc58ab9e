"""Examples to learn from: points in time with what was known then and what came. Cut by wall clock, never at random."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from predictors.features import FEWEST, Matrix, Origins, describe
from predictors.protocol import Floats, History, NotEnoughHistory, Target

LATER = 0.15
"""The share of the time, at its end, that only decides when to stop."""
FEWEST_ROWS = 400
CLIP = 50.0
"""Targets beyond so many units of variation teach nothing that the others could use."""


@dataclass(frozen=True, slots=True)
class Examples:
    matrix: Matrix
    target: Floats
    """Distance from the latest value, in units of what the last value errs by: so each series counts alike."""


def draw_examples(history: History, ahead: int, target: Target, rows: int) -> tuple[Examples, Examples]:
    """To learn from, and from a later time to stop by. Raises NotEnoughHistory."""
    outcome = outcomes(history, ahead, target)
    usable = np.isfinite(history.values) & np.isfinite(outcome)
    usable[:, :FEWEST] = False
    busy = np.flatnonzero(usable.any(axis=0))
    if not len(busy):
        raise NotEnoughHistory(f"no series has a sample {ahead} steps after another")
    split = busy[0] + int((1 - LATER) * (busy[-1] + 1 - busy[0]))
    first, second = usable.copy(), usable
    first[:, max(0, split - ahead) :] = False
    second[:, :split] = False
    # The seed is fixed so that the same history gives the same model.
    draw = np.random.default_rng(1)
    return (
        _examples(history, outcome, _drawn(first, rows, draw), ahead),
        _examples(history, outcome, _drawn(second, rows // 4, draw), ahead),
    )


def outcomes(history: History, ahead: int, target: Target) -> Matrix:
    """What came after each column; NaN where it is not known, and where demand was cut: that was not all of it."""
    values = history.values if history.cut is None else np.where(history.cut, np.float32(np.nan), history.values)
    outcome = np.full(values.shape, np.nan, dtype=np.float32)
    if values.shape[1] <= ahead:
        return outcome
    outcome[:, :-ahead] = values[:, ahead:]
    if target is Target.PEAK:
        # np.maximum keeps NaN: a maximum over a gap is not known.
        for sooner in range(1, ahead):
            outcome[:, :-ahead] = np.maximum(outcome[:, :-ahead], values[:, sooner : sooner - ahead])
    return outcome


def _drawn(usable: NDArray[np.bool_], rows: int, draw: np.random.Generator) -> Origins:
    places = np.flatnonzero(usable)
    if len(places) > rows:
        places = np.sort(draw.choice(places, rows, replace=False))
    series, columns = np.unravel_index(places, usable.shape)
    return Origins(series, columns)


def _examples(history: History, outcome: Matrix, origins: Origins, ahead: int) -> Examples:
    seen = describe(history, origins, ahead)
    usable = np.isfinite(seen.centre) & (seen.scale > 0)
    if usable.sum() < FEWEST_ROWS // 4:
        raise NotEnoughHistory(f"only {int(usable.sum())} points in time to learn from")
    target = (outcome[origins.rows, origins.columns].astype(np.float64) - seen.centre)[usable] / seen.scale[usable]
    return Examples(seen.matrix[usable], np.clip(target, -CLIP, CLIP))
