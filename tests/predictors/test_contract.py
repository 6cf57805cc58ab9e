"""Every registered predictor keeps the promises of the protocol."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from predictors.last_value import LastValue
from predictors.protocol import Floats, History, Predictor, Target, TrainedPredictor
from predictors.registry import UnknownPredictor, known_predictors, load_predictor
from predictors.testing import check_predictor

UNTRAINED = [name for name in known_predictors() if not isinstance(load_predictor(name), TrainedPredictor)]
TRAINED = [name for name in known_predictors() if name not in UNTRAINED]


@pytest.mark.parametrize("name", UNTRAINED)
@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 2**31))
def test_every_predictor_keeps_its_promises(name: str, seed: int) -> None:
    check_predictor(load_predictor(name), seed=seed)


@pytest.mark.parametrize("name", TRAINED)
def test_every_predictor_that_learns_keeps_its_promises(name: str) -> None:
    check_predictor(load_predictor(name))


def test_the_names_are_those_they_are_registered_by() -> None:
    assert {load_predictor(name).name for name in known_predictors()} == set(known_predictors())
    assert {"last-value", "smoothing", "seasonal", "ridge", "boosted", "boosted-peak"} <= set(known_predictors())


def test_an_unknown_predictor_is_named_with_the_known_ones() -> None:
    with pytest.raises(UnknownPredictor, match=r"prophet.*last-value"):
        load_predictor("prophet")


@dataclass(frozen=True)
class _Breaking:
    broken: str
    target: Target = Target.VALUE
    name: str = "breaking"

    def predict(self, history: History, minutes: Sequence[float]) -> Floats:
        right = LastValue().predict(history, minutes)
        if self.broken == "unknown":
            return np.nan_to_num(right)
        if self.broken == "shape":
            return right[:, :1]
        if self.broken == "neighbours" and len(right):
            return right + np.nansum(right)
        if self.broken == "unit":
            return right + 1.0
        return right * 0.5


@pytest.mark.parametrize(
    ("predictor", "promise"),
    [
        (_Breaking("unknown"), "without samples there is no answer"),
        (_Breaking("shape"), "a row per series, a column per horizon"),
        (_Breaking("neighbours"), "matter"),
        (_Breaking("unit"), "the unit does not matter"),
        (_Breaking("half"), "a constant series stays as it is"),
    ],
    ids=lambda each: str(each)[:30],
)
def test_a_broken_promise_is_named(predictor: Predictor, promise: str) -> None:
    with np.errstate(all="ignore"), pytest.raises(AssertionError, match=promise):
        check_predictor(predictor)
