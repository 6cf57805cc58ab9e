"""Maintenance windows: cron schedules in their time zone."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from reactor.errors import SettingsError
from reactor.settings.load import parse_settings
from reactor.settings.windows import Window, closed_until, parse_window


def at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


NIGHT = parse_window("0 2 * * *; 4h; Europe/Berlin")


@pytest.mark.parametrize(
    ("now", "closes"),
    [
        ("2026-01-05T00:59:59", None),
        ("2026-01-05T01:00:00", "2026-01-05T05:00:00"),
        ("2026-01-05T04:59:59", "2026-01-05T05:00:00"),
        ("2026-01-05T05:00:00", None),
        ("2026-07-05T00:30:00", "2026-07-05T04:00:00"),
    ],
)
def test_a_window_is_open_in_its_own_time_zone(now: str, closes: str | None) -> None:
    assert NIGHT.closes_at(at(now)) == (None if closes is None else at(closes))


def test_a_window_may_last_over_midnight_and_longer_than_its_period() -> None:
    weekend = parse_window("0 20 * * 5; 2d")
    assert closed_until([weekend], at("2026-01-04T12:00:00")) is None  # Sunday
    assert closed_until([weekend], at("2026-01-05T12:00:00")) == at("2026-01-09T20:00:00")


def test_the_next_of_several_windows_counts() -> None:
    noon = parse_window("0 12 * * *; 1h")
    assert closed_until([NIGHT, noon], at("2026-01-05T10:00:00")) == at("2026-01-05T12:00:00")
    assert closed_until([NIGHT, noon], at("2026-01-05T12:30:00")) is None


def test_without_windows_moves_may_start_at_all_times() -> None:
    assert closed_until([], 0.0) is None


def test_the_hour_that_summer_time_skips_opens_no_window_twice() -> None:
    window = Window("30 2 * * *", 1800.0, "Europe/Berlin")
    opens = [window.opens_at(at("2026-03-28T12:00:00")), window.opens_at(at("2026-03-29T12:00:00"))]
    assert opens[0] < opens[1]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("0 2 * * *", "is not a window"),
        ("0 2 * *; 4h", "is not a cron schedule"),
        ("0 0 31 2 *; 4h", "is not a cron schedule|never comes"),
        ("0 2 * * *; soon", "is not a duration"),
        ("0 2 * * *; 0s", "is not a duration"),
        ("0 2 * * *; 4h; Mars/Base", "is not a time zone"),
        ("0 2 * * *; 4h; /etc/passwd", "is not a time zone"),
    ],
)
def test_a_bad_window_says_what_to_write(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        parse_window(text)


def test_every_error_of_a_window_in_the_settings_is_listed() -> None:
    text = "execution: {windows: [{schedule: nightly, duration: 4h, timeZone: Mars}]}"
    with pytest.raises(SettingsError) as error:
        parse_settings(text, "test")
    assert [problem.path for problem in error.value.problems] == [
        "execution.windows[0].schedule",
        "execution.windows[0].timeZone",
    ]
