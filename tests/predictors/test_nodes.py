from __future__ import annotations

import numpy as np
import pytest

from predictors.nodes import node_history
from predictors.percentile import Percentile
from predictors.protocol import History


def test_the_peaks_of_pods_do_not_add_up_to_that_of_their_node() -> None:
    angle = np.arange(288) * (2 * np.pi / 48)
    pods = History(np.stack([1 + np.sin(angle), 1 - np.sin(angle)]).astype(np.float32), 300.0)
    node = node_history(pods, np.array([0, 0]), 1)
    apart = Percentile().predict(pods, (15.0,)).sum()
    together = Percentile().predict(node, (15.0,))[0, 0]
    assert together == pytest.approx(2.0, rel=1e-3)
    assert apart > 3.9


def test_young_pods_count_as_if_they_had_always_been_there() -> None:
    values = np.array([[1, 1, 1, 1], [np.nan, np.nan, 2, 3], [5, np.nan, 5, 5]], dtype=np.float32)
    node = node_history(History(values, 60.0), np.array([0, 0, 2]), 3)
    assert node.values[0].tolist() == [3, 3, 3, 4]
    assert np.isnan(node.values[2]).tolist() == [False, True, False, False]


def test_unknown_pods_make_their_node_unknown_and_an_empty_node_is_unknown() -> None:
    values = np.array([[1, 1], [np.nan, np.nan]], dtype=np.float32)
    node = node_history(History(values, 60.0, cut=np.array([[False, True], [False, False]])), np.array([0, 0]), 2)
    assert np.isnan(node.values).all()
    assert node.cut is not None
    assert node.cut.tolist() == [[False, True], [False, False]]
