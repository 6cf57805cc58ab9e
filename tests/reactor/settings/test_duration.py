from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactor.settings.duration import format_duration, parse_duration


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.0, "0s"), (0.25, "250ms"), (90.0, "1m30s"), (300.0, "5m"), (5400.0, "1h30m"), (604800.0, "7d"), (1e-7, 1e-7)],
)
def test_durations_are_written_as_people_do(seconds: float, text: str | float) -> None:
    assert format_duration(seconds) == text


@pytest.mark.parametrize("text", ["", "5", "5 m", "m", "-5m", "5mm", "1h 30m", "1,5h"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration"):
        parse_duration(text)


@given(st.floats(0, 1e9))
def test_what_is_written_is_read_as_the_same_number(seconds: float) -> None:
    assert parse_duration(format_duration(seconds)) == seconds
