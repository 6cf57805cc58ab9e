"""Planners by name. Any package can add one through the entry-point group `rematch.planners`."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from importlib.metadata import entry_points
from types import MappingProxyType
from typing import cast

from matching.parameters import make
from matching.plan import Planner
from matching.problem import ProblemError

GROUP = "rematch.planners"

_NONE: Mapping[str, object] = MappingProxyType({})


def known_planners() -> tuple[str, ...]:
    return tuple(sorted({entry.name for entry in entry_points(group=GROUP)}))


def load_planner(name: str, parameters: Mapping[str, object] = _NONE) -> Planner:
    """Raise ProblemError for an unknown planner, ParameterError (one of them) for a parameter it does not take."""
    return make(planner_class(name), parameters)


def planner_class(name: str) -> type[Planner]:
    found = next(iter(entry_points(group=GROUP, name=name)), None)
    if found is None:
        raise ProblemError(f"unknown planner {name!r}; known are {', '.join(known_planners()) or 'none'}")
    try:
        loaded = found.load()
    except (ImportError, AttributeError) as error:
        raise ProblemError(f"planner {name!r} cannot be loaded from {found.value}: {error}") from error
    missing = [what for what in ("name", "waives", "plan") if not hasattr(loaded, what)]
    if missing or not (isinstance(loaded, type) and dataclasses.is_dataclass(loaded)):
        lacks = f" and lacks {', '.join(missing)}" if missing else ""
        raise ProblemError(f"planner {name!r}: {found.value} must be a dataclass with name, waives and plan{lacks}")
    return cast(type[Planner], loaded)
