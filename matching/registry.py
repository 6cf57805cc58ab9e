"""Planners by name. Any package can add one through the entry-point group `rematch.planners`."""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import cast

from matching.plan import Planner
from matching.problem import ProblemError

GROUP = "rematch.planners"


def known_planners() -> tuple[str, ...]:
    return tuple(sorted({entry.name for entry in entry_points(group=GROUP)}))


def load_planner(name: str) -> Planner:
    found = next(iter(entry_points(group=GROUP, name=name)), None)
    if found is None:
        raise ProblemError(f"unknown planner {name!r}; known are {', '.join(known_planners()) or 'none'}")
    try:
        planner_class = found.load()
    except (ImportError, AttributeError) as error:
        raise ProblemError(f"planner {name!r} cannot be loaded from {found.value}: {error}") from error
    return cast(Planner, planner_class())
