"""Cells that several tables share."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from loadtests.embedded.objects import seconds
from loadtests.embedded.resources import Json

Cells = list[Any]
NONE = "<none>"


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    type: str = "string"
    format: str = ""
    priority: int = 0
    """1 is shown by `-o wide` only."""

    def as_json(self) -> Json:
        return {
            "name": self.name,
            "type": self.type,
            "format": self.format,
            "description": "",
            "priority": self.priority,
        }


def named() -> Column:
    return Column("Name", format="name")


def wide(*names: str) -> tuple[Column, ...]:
    return tuple(Column(name, priority=1) for name in names)


def age(stamp: str | None, now: float) -> str:
    if not stamp:
        return "<unknown>"
    return human_duration(now - seconds(stamp))


def human_duration(passed: float) -> str:
    """kubectl's way: the two leading units while the first is small, one when it is large."""
    total = int(passed)
    if total < -1:
        return "<invalid>"
    total = max(total, 0)
    minutes, hours, days = total // 60, total // 3600, total // 86400
    if total < 120:
        return f"{total}s"
    if minutes < 10:
        return _pair(minutes, "m", total % 60, "s")
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return _pair(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    if hours < 192:
        return _pair(days, "d", hours % 24, "h")
    if days < 730:
        return f"{days}d"
    if days < 2920:
        return _pair(days // 365, "y", days % 365, "d")
    return f"{days // 365}y"


def _pair(first: int, unit: str, second: int, second_unit: str) -> str:
    return f"{first}{unit}{second}{second_unit}" if second else f"{first}{unit}"


def containers_and_images(pod_spec: Json) -> tuple[str, str]:
    containers: Iterable[Json] = pod_spec.get("containers") or ()
    names = [container.get("name", "") for container in containers]
    images = [container.get("image", "") for container in pod_spec.get("containers") or ()]
    return ",".join(names), ",".join(images)
