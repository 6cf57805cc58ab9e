"""A planner's parameters: the fields of its dataclass by their public names, checked before it is made."""

from __future__ import annotations

import dataclasses
import math
import re
import types
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from matching.problem import ProblemError

_WORDS = {float: "a number", int: "a whole number", bool: "true or false", str: "text", type(None): "nothing"}

Made = TypeVar("Made")


class ParameterError(ProblemError):
    """`parameter` is the public name; the text says what was given and what to give instead."""

    def __init__(self, parameter: str, what: str) -> None:
        self.parameter = parameter
        self.what = what
        super().__init__(f"parameter {parameter}: {what}")


def public_name(field: str) -> str:
    """camelCase, as all keys that people write."""
    return re.sub(r"_([a-z0-9])", lambda found: found[1].upper(), field)


def make(kind: type[Made], parameters: Mapping[str, object]) -> Made:
    """The dataclass with those parameters; the defaults for the rest. Raise ParameterError."""
    fields = {public_name(field.name): field.name for field in dataclasses.fields(kind) if field.init}  # type: ignore[arg-type]
    hints = get_type_hints(kind)
    values: dict[str, object] = {}
    for name, value in parameters.items():
        if name not in fields:
            known = ", ".join(sorted(fields)) or "none"
            raise ParameterError(name, f"is unknown; the parameters here are: {known}")
        values[fields[name]] = _checked(name, value, hints[fields[name]])
    return kind(**values)


def _checked(name: str, value: object, kind: Any) -> object:
    origin = get_origin(kind)
    if origin in (Union, types.UnionType):
        return _one_of(name, value, get_args(kind))
    if origin is not None and issubclass(origin, Mapping):
        if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
            raise _wrong(name, value, kind)
        inner = get_args(kind)[1]
        return {key: _checked(f"{name}.{key}", each, inner) for key, each in value.items()}
    if origin is not None and issubclass(origin, Sequence):
        if isinstance(value, str) or not isinstance(value, Sequence):
            raise _wrong(name, value, kind)
        inner = get_args(kind)[0]
        return tuple(_checked(f"{name}[{at}]", each, inner) for at, each in enumerate(value))
    return _scalar(name, value, kind)


def _one_of(name: str, value: object, kinds: tuple[Any, ...]) -> object:
    for kind in kinds:
        try:
            return _checked(name, value, kind)
        except ParameterError:
            continue
    raise ParameterError(name, f"is {value!r}; it must be {' or '.join(_word(kind) for kind in kinds)}")


def _scalar(name: str, value: object, kind: Any) -> object:
    if issubclass(kind, StrEnum):
        return _choice(name, value, kind)
    if kind is float and isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        return float(value)
    if kind is int and isinstance(value, int) and not isinstance(value, bool):
        return value
    if kind not in (int, float) and isinstance(value, kind):
        return value
    raise _wrong(name, value, kind)


def _choice(name: str, value: object, kind: type[StrEnum]) -> StrEnum:
    for each in kind:
        if value == each.value:
            return each
    raise _wrong(name, value, kind)


def _wrong(name: str, value: object, kind: Any) -> ParameterError:
    return ParameterError(name, f"is {value!r}; it must be {_word(kind)}")


def _word(kind: Any) -> str:
    origin = get_origin(kind)
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return " or ".join(each.value for each in kind)
    if origin is None:
        return _WORDS.get(kind, str(kind))
    return f"a mapping of names to {_word(get_args(kind)[1])}" if issubclass(origin, Mapping) else "a list"
