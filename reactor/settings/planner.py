"""The planner of the settings: is it installed, are its parameters valid, and may it act?

A planner's parameters are the fields of its dataclass, in camelCase. pydantic checks their names and types; the planner
itself checks their values. Settings that all planners share (scope, headroom, limits on moves) reach it as
`Problem.options`, made in `reactor/planning/problems.py`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import MISSING
from difflib import get_close_matches
from functools import lru_cache
from typing import Any, get_args, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic.alias_generators import to_camel
from pydantic_core import ErrorDetails

from matching.parameters import ParameterError
from matching.plan import Planner, Promise
from matching.problem import ProblemError
from matching.registry import known_planners, parameter_fields, planner_class
from reactor.errors import FieldError, SettingsError
from reactor.settings.document import nearest, path_of
from reactor.settings.model import Mode, Settings

FUNCTION = "function"
"""The planner that runs a user's function. Settings may choose it, but only a flag says which function that is."""

_CONFIG = ConfigDict(extra="forbid", allow_inf_nan=False, arbitrary_types_allowed=True, protected_namespaces=())
_EXPECTED = {
    "float_type": "a number",
    "finite_number": "a number",
    "int_type": "a whole number",
    "bool_type": "true or false",
    "string_type": "text",
    "none_required": "nothing",
    "tuple_type": "a list",
    "list_type": "a list",
    "dict_type": "a mapping of names to values",
    "mapping_type": "a mapping of names to values",
}
"""What a parameter must be, by pydantic's type of error."""

PLACES_PENDING = "stable"


def make_planner(name: str, parameters: Mapping[str, object]) -> Planner:
    """Raises ProblemError for an unknown planner, ParameterError for the first invalid parameter."""
    kind = _planner_class(name)
    return kind(**checked_parameters(kind, parameters))


def placing_planner(settings: Settings, make: Callable[[str, Mapping[str, object]], Planner]) -> Planner:
    """The planner that places pending pods: that of the settings if it is ours, else the default one. Nobody else's
    code can keep pods from being bound."""
    wanted = settings.planner
    if wanted.name == FUNCTION or not _planner_class(wanted.name).__module__.startswith("matching."):
        return make(PLACES_PENDING, {})
    return make(wanted.name, wanted.parameters)


def planner_errors(settings: Settings) -> list[FieldError]:
    wanted = settings.planner
    if unknown := unknown_planner(wanted.name):
        return unknown
    try:
        invalid = parameter_errors(planner_class(wanted.name), wanted.parameters)
        if invalid:
            return [FieldError(f"planner.parameters.{path}", message) for path, message in invalid]
        planner = make_planner(wanted.name, wanted.parameters)
    except ParameterError as error:
        return [FieldError(f"planner.parameters.{error.parameter}", error.what)]
    except ProblemError as error:
        return [FieldError("planner.name", str(error))]
    if settings.mode is not Mode.ACT or wanted.allow_unsafe or not planner.waives:
        return []
    waived = ", ".join(sorted(planner.waives))
    return [
        FieldError(
            "planner.name",
            f"{wanted.name} does not promise {waived}, so it may not act;"
            " choose another planner, `mode: bind` or `mode: observe`, or set planner.allowUnsafe to true",
        )
    ]


def with_function(settings: Settings, function: str | None) -> Settings:
    """Settings of the planner `function`, with the function that the process was started with; None leaves it open."""
    if "path" in settings.planner.parameters:
        what = "names code, which settings may not; start the process with --planner-function package.module:function"
        raise SettingsError([FieldError("planner.parameters.path", what)])
    if function is None:
        return settings
    if not function:
        what = "needs a function; start the process with --planner-function package.module:function"
        raise SettingsError([FieldError("planner.name", f"{FUNCTION} {what}")])
    planner = settings.planner.model_copy(update={"parameters": {**settings.planner.parameters, "path": function}})
    found = settings.model_copy(update={"planner": planner})
    if problems := planner_errors(found):
        raise SettingsError(problems)
    return found


_planner_class = lru_cache(maxsize=32)(planner_class)
"""Cached, because each look-up reads the metadata of all installed packages, and each cycle that plans needs one."""


@lru_cache(maxsize=32)
def waived_by(planner: str) -> frozenset[Promise]:
    """Cached, because it is called for every pod. A planner that is not installed waives nothing."""
    try:
        return planner_class(planner).waives
    except ProblemError:
        return frozenset()


def unknown_planner(name: str) -> list[FieldError]:
    installed = known_planners()
    if name in installed:
        return []
    return [FieldError("planner.name", f"no planner {name!r} is installed; {nearest(name, installed)}")]


def checked_parameters(kind: type[Planner], parameters: Mapping[str, object]) -> dict[str, object]:
    """The given parameters by field name. Raises ParameterError for the first invalid one."""
    try:
        model = _validate(kind, parameters)
    except ValidationError as error:
        raise ParameterError(*_explain(kind, error.errors()[0])) from None
    return {name: getattr(model, name) for name in model.model_fields_set}


def parameter_errors(kind: type[Planner], parameters: Mapping[str, object]) -> list[FieldError]:
    """Every parameter with an unknown name or a wrong type."""
    try:
        _validate(kind, parameters)
    except ValidationError as error:
        return [_explain(kind, details) for details in error.errors()]
    return []


def _validate(kind: type[Planner], parameters: Mapping[str, object]) -> BaseModel:
    """As JSON, because pydantic is strict about types there without refusing lists for tuples and text for enums."""
    text = json.dumps(dict(parameters))
    return _model(kind).model_validate_json(text, strict=True, by_alias=True, by_name=False)


@lru_cache(maxsize=32)
def _model(kind: type[Planner]) -> type[BaseModel]:
    """The fields that a value is given for; the planner's dataclass has the defaults."""
    types = get_type_hints(kind)
    fields: dict[str, Any] = {}
    for name, field in parameter_fields(kind).items():
        required = field.default is MISSING and field.default_factory is MISSING
        fields[name] = (types[name], Field(... if required else None, alias=to_camel(name)))
    return create_model(kind.__name__, __config__=_CONFIG, **fields)


def _explain(kind: type[Planner], details: ErrorDetails) -> FieldError:
    aliases = {to_camel(name): name for name in parameter_fields(kind)}
    path, problem, value = path_of(details["loc"]), details["type"], details["input"]
    if problem == "extra_forbidden":
        close = get_close_matches(path, aliases, n=1)
        hint = f"; did you mean {close[0]}?" if close else ""
        return FieldError(path, f"is unknown; the parameters here are: {', '.join(sorted(aliases)) or 'none'}{hint}")
    if problem == "missing":
        return FieldError(path, "is missing; this planner needs it")
    if problem == "enum":
        expected = details["ctx"]["expected"].replace("'", "")
    else:
        expected = _EXPECTED.get(problem, details["msg"])
    field = get_type_hints(kind)[aliases[str(details["loc"][0])]]
    if len(details["loc"]) == 1 and type(None) in get_args(field):
        expected += " or nothing"
    return FieldError(path, f"is {value!r}; it must be {expected}")
