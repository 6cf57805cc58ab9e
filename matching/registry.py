"""Planners by name. Any package can add one through the entry-point group `rematch.planners`."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from importlib.metadata import entry_points
from types import MappingProxyType
from typing import cast

from matching.parameters import ParameterError
from matching.plan import Planner
from matching.problem import ProblemError

GROUP = "rematch.planners"

_NONE: Mapping[str, object] = MappingProxyType({})


def known_planners() -> tuple[str, ...]:
    return tuple(sorted({entry.name for entry in entry_points(group=GROUP)}))


def load_planner(name: str, parameters: Mapping[str, object] = _NONE) -> Planner:
    """`parameters` are values for fields of the planner's dataclass, of the right types; the rest has defaults.

    Raises ProblemError for an unknown planner, ParameterError for a field it does not have or a value it refuses.
    """
    kind = planner_class(name)
    known = parameter_fields(kind)
    for parameter in parameters:
        if parameter not in known:
            raise ParameterError(
                parameter, f"is unknown; the parameters here are: {', '.join(sorted(known)) or 'none'}"
            )
    return kind(**parameters)


def parameter_fields(kind: type[Planner]) -> dict[str, dataclasses.Field[object]]:
    """By name. Every planner is a dataclass; `planner_class` sees to it."""
    return {field.name: field for field in dataclasses.fields(kind) if field.init}  # type: ignore[arg-type]


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
