"""Maintenance windows: a cron schedule says when one opens, a duration how long it stays open."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

from reactor.settings.duration import parse_duration

EXAMPLE = "0 2 * * 1-5; 4h; Europe/Berlin"


@dataclass(frozen=True, slots=True)
class Window:
    """`schedule` has the five fields of cron, read in `time_zone`."""

    schedule: str
    duration: float
    time_zone: str = "UTC"

    def closes_at(self, now: float) -> float | None:
        """When the window that is open now closes; None when it is closed."""
        opened = next(CronSim(self.schedule, self._local(now + 1.0), reverse=True)).timestamp()
        return opened + self.duration if now < opened + self.duration else None

    def opens_at(self, now: float) -> float:
        return next(CronSim(self.schedule, self._local(now))).timestamp()

    def _local(self, at: float) -> datetime:
        return datetime.fromtimestamp(at, ZoneInfo(self.time_zone))


def schedule_problem(schedule: str) -> str:
    """Why it is not a cron schedule that ever comes; empty when it is one."""
    try:
        next(CronSim(schedule, datetime(2026, 1, 1, tzinfo=ZoneInfo("UTC"))))
    except CronSimError:
        return f"{schedule!r} is not a cron schedule; write minute hour day month weekday, as in 0 2 * * 1-5"
    except StopIteration:
        return f"{schedule!r} names a date that never comes"
    return ""


def time_zone_problem(name: str) -> str:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return f"{name!r} is not a time zone; write a name of the tz database, as in Europe/Berlin"
    return ""


def parse_window(text: str) -> Window:
    """`SCHEDULE; DURATION` or `SCHEDULE; DURATION; TIME ZONE`, as in annotations. Raises ValueError."""
    fields = [field.strip() for field in text.split(";")]
    if len(fields) not in (2, 3):
        raise ValueError(f"{text!r} is not a window; write e.g. {EXAMPLE}")
    schedule, duration, zone = fields[0], parse_duration(fields[1]), fields[2] if len(fields) == 3 else "UTC"
    problem = schedule_problem(schedule) or time_zone_problem(zone)
    if problem:
        raise ValueError(problem)
    if not isinstance(duration, float) or duration <= 0:
        raise ValueError(f"{fields[1]!r} is not a duration; write e.g. 4h")
    return Window(schedule, duration, zone)


@lru_cache(maxsize=1024)
def annotated_closed_until(text: str, now: float) -> float | None:
    """`closed_until` of the window in an annotation. Cached, because all pods of a namespace may share it, and some
    schedules take milliseconds. Raises ValueError."""
    return closed_until((parse_window(text),), now)


def closed_until(windows: Iterable[Window], now: float) -> float | None:
    """When the next window opens; None while one is open, and when there are no windows at all."""
    windows = tuple(windows)
    if not windows or any(window.closes_at(now) is not None for window in windows):
        return None
    return min(window.opens_at(now) for window in windows)
