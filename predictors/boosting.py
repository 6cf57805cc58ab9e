"""One boosted model for one horizon: how it is trained, and where it may be used."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from predictors.features import Features, Matrix
from predictors.protocol import Floats, State
from predictors.training_rows import Examples
from predictors.trees import DamagedTrees, Trees, trees_from_state, trees_of

ROUND = 20
"""Trees between two looks at the clock and at the later examples."""
PATIENCE = 2
"""Rounds without improvement after which training ends."""
MARGIN = 0.1
"""A feature may be so much outside its range in training, as a share of that range."""


@dataclass(frozen=True, slots=True)
class Learning:
    """Parameters of HistGradientBoostingRegressor."""

    loss: str
    quantile: float | None
    trees: int = 120
    rate: float = 0.1
    leaves: int = 24
    depth: int = 7
    examples_per_leaf: int = 40
    penalty: float = 1.0


@dataclass(frozen=True, slots=True)
class Boosted:
    trees: Trees
    used: NDArray[np.bool_]
    """Features that had any value in training: in a young cluster there is no last week."""
    low: NDArray[np.float32]
    high: NDArray[np.float32]
    """Range of each used feature in training."""
    never_missing: NDArray[np.bool_]

    def predict(self, seen: Features) -> Floats:
        """NaN outside what it has seen. A constant series needs no model: it stays as it is."""
        matrix = seen.matrix[:, self.used]
        span = MARGIN * (self.high - self.low)
        outside = (matrix < self.low - span) | (matrix > self.high + span) | (np.isnan(matrix) & self.never_missing)
        predicted = seen.centre + seen.scale * self.trees.predict(matrix)
        return np.where(seen.scale == 0, seen.centre, np.where(outside.any(axis=1), np.nan, predicted))

    def state(self, prefix: str) -> State:
        arrays = (self.used, self.low, self.high, self.never_missing)
        own = {f"{prefix}.{name}": array for name, array in zip(_NAMES, arrays, strict=True)}
        return {**own, **self.trees.state(prefix)}


_NAMES = ("used", "low", "high", "never_missing")


def boosted_from_state(state: State, prefix: str) -> Boosted:
    """Raises DamagedTrees."""
    trees = trees_from_state(state, prefix)
    try:
        used, low, high, never_missing = (state[f"{prefix}.{name}"] for name in _NAMES)
    except KeyError as error:
        raise DamagedTrees(f"the array {error} is missing") from error
    if used.ndim != 1 or used.sum() != trees.features or not low.shape == high.shape == never_missing.shape:
        raise DamagedTrees(f"{prefix}: the features are not those of the trees")
    return Boosted(
        trees, used.astype(bool), low.astype(np.float32), high.astype(np.float32), never_missing.astype(bool)
    )


def learn(examples: Examples, later: Examples, how: Learning, seconds: float) -> Boosted:
    """Stops when the later examples are no longer predicted better, or when the time is over."""
    used = np.logical_or.reduce(np.isfinite(examples.matrix), axis=0)
    matrix = examples.matrix[:, used]
    trees = _boost(matrix, examples, later.matrix[:, used], later, how, seconds)
    low, high = np.fmin.reduce(matrix, axis=0), np.fmax.reduce(matrix, axis=0)
    return Boosted(trees, used, low, high, np.logical_and.reduce(np.isfinite(matrix), axis=0))


def _boost(
    matrix: Matrix, examples: Examples, later_matrix: Matrix, later: Examples, how: Learning, seconds: float
) -> Trees:
    # Only training needs scikit-learn, and importing it takes a second and 60 MB.
    from sklearn.ensemble import HistGradientBoostingRegressor

    deadline = time.monotonic() + seconds
    regressor = HistGradientBoostingRegressor(
        loss=how.loss,
        quantile=how.quantile,
        learning_rate=how.rate,
        max_leaf_nodes=how.leaves,
        max_depth=how.depth,
        min_samples_leaf=how.examples_per_leaf,
        l2_regularization=how.penalty,
        early_stopping=False,
        warm_start=True,
        random_state=1,
    )
    best: Trees | None = None
    least, worse = np.inf, 0
    for trees in range(ROUND, how.trees + 1, ROUND):
        started = time.monotonic()
        regressor.set_params(max_iter=trees).fit(matrix, examples.target)
        found = trees_of(regressor)
        error = _error(found.predict(later_matrix), later, how)
        worse = worse + 1 if error >= least else 0
        if best is None or error < least:
            best, least = found, error
        now = time.monotonic()
        if worse == PATIENCE or now + (now - started) > deadline:
            break
    return best if best is not None else found


def _error(predicted: Floats, later: Examples, how: Learning) -> float:
    away = later.target - predicted
    share = 0.5 if how.quantile is None else how.quantile
    return float(np.mean(np.maximum(share * away, (share - 1) * away)))
