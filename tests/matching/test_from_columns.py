"""Values made by columns are the values that `__init__` would have made."""

from __future__ import annotations

import pytest

from matching.plan import Stay
from matching.problem import from_columns

COLUMNS = {"pod": ["a/1", "a/2"], "uid": ["1", "2"], "node": ["n1", "n2"], "reason": ["x", "y"]}


def test_values_are_equal_to_those_made_one_by_one() -> None:
    made = from_columns(Stay, COLUMNS)

    assert made == [Stay("a/1", "1", "n1", "x"), Stay("a/2", "2", "n2", "y")]
    assert hash(made[0]) == hash(Stay("a/1", "1", "n1", "x"))


def test_every_field_needs_a_column() -> None:
    with pytest.raises(ValueError, match="Stay has the fields"):
        from_columns(Stay, {name: column for name, column in COLUMNS.items() if name != "reason"})


def test_columns_are_of_one_length() -> None:
    with pytest.raises(ValueError, match="1 values of reason for 2"):
        from_columns(Stay, COLUMNS | {"reason": ["x"]})
