"""Boosted trees as plain arrays: saved without pickle, and predicted without scikit-learn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from predictors.protocol import Floats, PredictorError, State

CHUNK = 512
"""Rows of one pass, through all trees at once: what it touches stays in the processor's cache."""
MOST_DEPTH = 64


class DamagedTrees(PredictorError):
    """The arrays are not those of trees."""


@dataclass(frozen=True, slots=True)
class Trees:
    """All nodes of all trees in a row. The right child follows the left one; a leaf is its own left child.

    Feature numbers from `features` on mean the same features where missing goes left: predictions then need one
    comparison per level.
    """

    features: int
    baseline: float
    starts: NDArray[np.intp]
    """The root of each tree."""
    depth: int
    """Of the deepest tree."""
    feature: NDArray[np.intp]
    threshold: Floats
    left: NDArray[np.intp]
    value: Floats

    def predict(self, matrix: NDArray[np.float32]) -> Floats:
        starts = range(0, len(matrix), CHUNK)
        parts = [self._predict(matrix[start : start + CHUNK]) for start in starts]
        return np.concatenate(parts) if parts else np.empty(0)

    def _predict(self, matrix: NDArray[np.float32]) -> Floats:
        missing_left = np.where(np.isnan(matrix), np.float32(-np.inf), matrix)
        both = np.concatenate([matrix, missing_left], axis=1).ravel()
        row = (np.arange(len(matrix)) * (2 * self.features))[:, np.newaxis]
        node = np.broadcast_to(self.starts, (len(matrix), len(self.starts)))
        for _ in range(self.depth):
            goes_left = both.take(row + self.feature.take(node)) <= self.threshold.take(node)
            node = self.left.take(node) + ~goes_left
        total: Floats = self.baseline + self.value.take(node).sum(axis=1)
        return total

    def state(self, prefix: str) -> State:
        numbers = np.array([self.features, self.baseline, self.depth])
        arrays = (numbers, self.starts, self.feature, self.threshold, self.left, self.value)
        return {f"{prefix}.{name}": array for name, array in zip(_NAMES, arrays, strict=True)}


_NAMES = ("numbers", "starts", "feature", "threshold", "left", "value")


def trees_from_state(state: State, prefix: str) -> Trees:
    """Raises DamagedTrees where an index would lead out of the arrays or round in circles."""
    try:
        numbers, *rest = (state[f"{prefix}.{name}"] for name in _NAMES)
    except KeyError as error:
        raise DamagedTrees(f"the array {error} is missing") from error
    starts, feature, threshold, left, value = rest
    if numbers.shape != (3,) or any(array.ndim != 1 for array in rest):
        raise DamagedTrees(f"{prefix}: the shapes are not those of trees")
    nodes = np.arange(len(left))
    sound = (
        len(feature) == len(threshold) == len(left) == len(value)
        and all(np.issubdtype(array.dtype, np.integer) for array in (starts, feature, left))
        and all(np.issubdtype(array.dtype, np.floating) for array in (numbers, threshold, value))
        and bool(((starts >= 0) & (starts < len(left))).all())
        and 0 <= numbers[2] <= MOST_DEPTH
        and bool(((feature >= 0) & (feature < 2 * numbers[0])).all())
        and bool(((left == nodes) | ((left > nodes) & (left < len(left) - 1))).all())
        and bool(np.isfinite(value).all() and np.isfinite(numbers).all())
    )
    if not sound:
        raise DamagedTrees(f"{prefix}: the nodes are not those of trees")
    return Trees(int(numbers[0]), float(numbers[1]), starts, int(numbers[2]), feature, threshold, left, value)


def trees_of(regressor: Any) -> Trees:
    """From a fitted HistGradientBoostingRegressor. Its trees are not public, so `tests/predictors/test_trees.py`
    compares what both predict."""
    features = int(regressor.n_features_in_)
    trees = [_rows(predictor.nodes) for (predictor,) in regressor._predictors]
    sizes = [len(tree) for tree in trees]
    starts = np.cumsum([0, *sizes[:-1]]).astype(np.intp)
    nodes = [_tree(tree, int(start), features) for tree, start in zip(trees, starts, strict=True)]
    feature, threshold, left, value = (np.concatenate([each[part] for each in nodes]) for part in range(4))
    depth = max(int(tree["depth"].max()) for tree in trees)
    baseline = float(np.asarray(regressor._baseline_prediction).ravel()[0])
    return Trees(features, baseline, starts, depth, feature, threshold, left, value)


def _rows(nodes: NDArray[Any]) -> NDArray[Any]:
    """In the order of a breadth-first walk, so that children stand side by side."""
    order = [0]
    for at in order:
        if not nodes[at]["is_leaf"]:
            order += [int(nodes[at]["left"]), int(nodes[at]["right"])]
    return nodes[order]


def _tree(nodes: NDArray[Any], start: int, features: int) -> tuple[NDArray[Any], ...]:
    leaf = nodes["is_leaf"].astype(bool)
    number = start + np.arange(len(nodes))
    left = number.copy()
    left[~leaf] = start + 1 + 2 * np.arange(int((~leaf).sum()))
    missing_left = leaf | nodes["missing_go_to_left"].astype(bool)
    feature = np.where(leaf, 0, nodes["feature_idx"]).astype(np.intp) + features * missing_left
    threshold = np.where(leaf, np.inf, nodes["num_threshold"]).astype(np.float64)
    return feature, threshold, left, nodes["value"].astype(np.float64)
