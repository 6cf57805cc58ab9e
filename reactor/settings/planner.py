"""Is the planner that the settings name there, are its parameters right, and may it act?"""

from __future__ import annotations

from functools import lru_cache

from matching.parameters import ParameterError
from matching.plan import Promise
from matching.problem import ProblemError
from matching.registry import known_planners, load_planner, planner_class
from reactor.settings.document import FieldError, nearest
from reactor.settings.model import Mode, Settings


def planner_problems(settings: Settings) -> list[FieldError]:
    wanted = settings.planner
    if unknown := unknown_planner(wanted.name):
        return unknown
    try:
        planner = load_planner(wanted.name, wanted.parameters)
    except ParameterError as error:
        return [(f"planner.parameters.{error.parameter}", error.what)]
    except ProblemError as error:
        return [("planner.name", str(error))]
    if settings.mode is not Mode.ACT or wanted.allow_unsafe or not planner.waives:
        return []
    waived = ", ".join(sorted(planner.waives))
    return [
        (
            "planner.name",
            f"{wanted.name} does not promise {waived}, so it may not act;"
            " choose another planner, `mode: observe`, or set planner.allowUnsafe to true",
        )
    ]


@lru_cache(maxsize=32)
def waived_by(planner: str) -> frozenset[Promise]:
    """By its name; asked for every pod, so remembered. A planner that is not there waives nothing."""
    try:
        return planner_class(planner).waives
    except ProblemError:
        return frozenset()


def unknown_planner(name: str) -> list[FieldError]:
    installed = known_planners()
    if name in installed:
        return []
    return [("planner.name", f"no planner {name!r} is installed; {nearest(name, installed)}")]
