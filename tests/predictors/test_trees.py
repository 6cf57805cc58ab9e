"""Our arrays predict as scikit-learn's trees do, missing values included, and damaged arrays are refused."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor

from predictors.trees import DamagedTrees, Trees, trees_from_state, trees_of


@cache
def fitted(seed: int, loss: str = "squared_error") -> tuple[HistGradientBoostingRegressor, np.ndarray]:
    draw = np.random.default_rng(seed)
    matrix = draw.normal(size=(2000, 6)).astype(np.float32)
    matrix[draw.random(matrix.shape) < 0.2] = np.nan
    target = np.nan_to_num(matrix[:, 0]) * 2 + np.isnan(matrix[:, 1]) + np.sin(np.nan_to_num(matrix[:, 2]))
    quantile = 0.9 if loss == "quantile" else None
    regressor = HistGradientBoostingRegressor(loss=loss, quantile=quantile, max_iter=20, early_stopping=False)
    return regressor.fit(matrix, target), matrix


@pytest.mark.parametrize("loss", ["squared_error", "absolute_error", "quantile"])
def test_predicts_as_scikit_learn_does(loss: str) -> None:
    regressor, matrix = fitted(1, loss)
    draw = np.random.default_rng(2)
    others = (draw.normal(size=(3000, 6)) * 3).astype(np.float32)
    others[draw.random(others.shape) < 0.5] = np.nan
    for rows in (matrix, others, others[:0]):
        expected = regressor.predict(rows) if len(rows) else np.empty(0)
        assert trees_of(regressor).predict(rows) == pytest.approx(expected, abs=1e-12)


def test_is_the_same_after_a_round_trip() -> None:
    regressor, matrix = fitted(3)
    trees = trees_of(regressor)
    again = trees_from_state(trees.state("a"), "a")
    assert np.array_equal(again.predict(matrix), trees.predict(matrix))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("left", np.array([10**9])),
        ("left", np.array([-1])),
        ("feature", np.array([99])),
        ("numbers", np.array([6.0, 0.0, 1e6])),
        ("starts", np.array([-5])),
        ("value", np.array([np.nan])),
        ("threshold", np.array([[0.0]])),
        ("numbers", np.array([6.0])),
        ("left", np.array([0.5])),
    ],
)
def test_damaged_arrays_are_refused(name: str, value: np.ndarray) -> None:
    trees: Trees = trees_of(fitted(4)[0])
    state = dict(trees.state("a"))
    array = state[f"a.{name}"]
    state[f"a.{name}"] = (
        np.where(np.arange(len(array)) == 1, value, array) if value.shape == (1,) and name != "numbers" else value
    )
    with pytest.raises(DamagedTrees):
        trees_from_state(state, "a")
    with pytest.raises(DamagedTrees, match="missing"):
        trees_from_state({}, "a")
