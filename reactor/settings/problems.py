"""What is wrong with settings, in our words: the field by its path, what it must be, and what was there."""

from __future__ import annotations

import difflib
import json
from collections.abc import Sequence
from typing import Any

from pydantic import ValidationError
from pydantic.alias_generators import to_camel
from pydantic_core import ErrorDetails

from reactor.settings.document import Problem
from reactor.settings.model import Settings

_NOUNS = {
    "number": "a number",
    "integer": "a whole number",
    "boolean": "true or false",
    "string": "text",
    "array": "a list",
    "object": "a mapping of keys to values",
}
_KEY_MARK = "[key]"
"""How pydantic says that the error is in the key of a mapping, not in its value."""


def explain(error: ValidationError) -> list[Problem]:
    schema = Settings.model_json_schema()
    return [_problem(details, schema) for details in error.errors(include_url=False)]


def nearest(word: str, known: Sequence[str]) -> str:
    """A hint: what was probably meant, else what there is."""
    close = difflib.get_close_matches(to_camel(word), known, n=1, cutoff=0.6)
    return f"did you mean {close[0]}?" if close else f"known here: {', '.join(sorted(known))}"


def _problem(details: ErrorDetails, schema: dict[str, Any]) -> Problem:
    steps = [step for step in details["loc"] if step != _KEY_MARK]
    return path_of(steps), _message(details, steps, schema)


def path_of(steps: Sequence[str | int]) -> str:
    path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)
    return path.removeprefix(".")


def _message(details: ErrorDetails, steps: list[str | int], schema: dict[str, Any]) -> str:
    kind = details["type"]
    if kind == "extra_forbidden":
        return f"unknown key; {nearest(str(steps[-1]), list(_find(schema, steps[:-1])['properties']))}"
    if kind == "value_error":
        return str(details["ctx"]["error"])
    if kind == "json_invalid":
        return f"cannot be read: {details['ctx']['error']}"
    value = details["input"]
    return f"must be {_expected(_find(schema, steps), value)} (got {_shown(value)})"


def _find(schema: dict[str, Any], steps: Sequence[str | int]) -> dict[str, Any]:
    """The part of the JSON schema that a path leads to."""
    part = schema
    for step in steps:
        if isinstance(step, int):
            part = part["items"]
        else:
            part = part.get("properties", {}).get(step) or part["additionalProperties"]
        if "$ref" in part:
            part = schema["$defs"][part["$ref"].rpartition("/")[2]]
    return part


def _expected(part: dict[str, Any], value: object) -> str:
    if "const" in part:
        return str(part["const"])
    if "enum" in part:
        return f"one of {', '.join(part['enum'])}"
    if "anyOf" in part:
        choices = {choice["type"]: choice for choice in part["anyOf"]}
        if {"number", "string"} <= choices.keys() and not _is_number(value):
            return f"a duration such as 30s or 1h30m, {_bounds(choices['number'])}"
        return _expected(part["anyOf"][0], value)
    bounds = _bounds(part)
    if bounds and _is_number(value) and (part["type"] == "number" or isinstance(value, int)):
        return bounds
    joined = f"of {bounds}" if bounds.startswith("at ") else bounds
    return f"{_NOUNS[part['type']]} {joined}".strip()


def _bounds(part: dict[str, Any]) -> str:
    if "minimum" in part and "maximum" in part:
        return f"between {part['minimum']} and {part['maximum']}"
    words = {"minimum": "at least", "exclusiveMinimum": "above", "maximum": "at most", "exclusiveMaximum": "below"}
    return " and ".join(f"{word} {part[name]}" for name, word in words.items() if name in part)


def _is_number(value: object) -> bool:
    """NaN and the infinities are none that anybody would want to set."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < float("inf")


def _shown(value: object) -> str:
    if isinstance(value, dict | list):
        return "a mapping" if isinstance(value, dict) else "a list"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else text[:57] + "..."
