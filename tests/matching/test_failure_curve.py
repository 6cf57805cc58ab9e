"""The curve of probe failures by load: rising, within its bounds, refusing nonsense."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from matching.failure_curve import FailureCurve

_LOADS = st.lists(st.floats(0, 10), min_size=2, max_size=20)


@given(_LOADS)
def test_the_curve_rises_between_its_bounds(loads: list[float]) -> None:
    curve = FailureCurve()
    found = curve.probabilities(np.sort(np.array(loads)))
    assert (np.diff(found) >= 0).all()
    assert (found >= curve.floor).all()
    assert (found <= curve.ceiling).all()


def test_an_idle_node_hardly_fails_and_a_full_one_does() -> None:
    curve = FailureCurve()
    assert curve.probability(0.5) < 0.001
    assert curve.probability(1.0) == pytest.approx(0.2, abs=0.01)
    assert curve.probability(1.3) > 0.59


@pytest.mark.parametrize("values", [{"floor": -0.1}, {"ceiling": 1.1}, {"width": 0.0}, {"midpoint": math.nan}])
def test_nonsense_is_refused(values: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="failure curve"):
        FailureCurve(**values)
