"""Settings from text and back. All errors are found at once and raised as one SettingsError."""

from __future__ import annotations

import json
from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import yaml
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from reactor.errors import FieldError, SettingsError
from reactor.settings.document import Writer, nearest, path_of, read_document
from reactor.settings.model import Settings
from reactor.settings.planner import FUNCTION, planner_errors, with_function

CONFIG_MAP_KEY = "settings.yaml"

_NOUNS = {
    "number": "a number",
    "integer": "a whole number",
    "boolean": "true or false",
    "string": "text",
    "array": "a list",
    "object": "a mapping of keys to values",
}
_FLAGS = {
    "metrics.prometheus.tokenFile": "--prometheus-token-file FILE --prometheus-token-host https://HOST",
    "metrics.prometheus.caFile": "--prometheus-ca-file FILE",
}
"""Keys of earlier versions that are flags of the process now: settings name no file and no credential."""
_KEY_STEP = "[key]"
"""pydantic's last step of a path when the error is in the key of a mapping, not in its value."""


def parse_settings(text: str, source: str, planner_function: str | None = None) -> Settings:
    """A settings document or the manifest of a ConfigMap with one, in YAML or JSON. `source` is for error messages.

    `planner_function` is the flag of the process, empty without one; None where another process will use the settings.
    """
    try:
        return _validated(_settings_tree(text), planner_function)
    except SettingsError as error:
        raise SettingsError(error.problems, source) from None


def settings_from_tree(tree: dict[str, Any]) -> Settings:
    """Settings as keys and values. Raises SettingsError with every error and its path."""
    return _validated(tree, None)


def dump_settings(settings: Settings) -> str:
    """YAML that `parse_settings` reads as the same settings, including defaults."""
    tree = settings.model_dump(mode="json", by_alias=True)
    return yaml.dump(tree, Dumper=Writer, sort_keys=False, allow_unicode=True)


def _settings_tree(text: str) -> dict[str, Any]:
    tree = _mapping(read_document(text))
    if tree.get("kind") != "ConfigMap":
        return tree
    data = tree.get("data")
    inner = data.get(CONFIG_MAP_KEY) if isinstance(data, dict) else None
    if not isinstance(inner, str):
        raise SettingsError(
            [("data", f"the ConfigMap has no text under the key {CONFIG_MAP_KEY}; put the settings there")]
        )
    try:
        return _mapping(read_document(inner))
    except SettingsError as error:
        raise SettingsError([(path or f"data.{CONFIG_MAP_KEY}", message) for path, message in error.problems]) from None


def _mapping(tree: Any) -> dict[str, Any]:
    if tree is None:
        return {}
    if not isinstance(tree, dict):
        raise SettingsError([("", "must be a mapping of keys to values, such as `mode: observe`")])
    return tree


def _validated(tree: dict[str, Any], planner_function: str | None) -> Settings:
    # As JSON, because pydantic is strict about types there without refusing lists for tuples and text for enums.
    text = json.dumps(_without_unset(tree, Settings))
    try:
        settings = Settings.model_validate_json(text, strict=True, by_alias=True, by_name=False)
    except ValidationError as error:
        raise SettingsError([*field_errors(error), *_planner_errors_of_the_rest(tree, error)]) from None
    if settings.planner.name == FUNCTION:
        return with_function(settings, planner_function)
    if problems := planner_errors(settings):
        raise SettingsError(problems)
    return settings


def _without_unset(tree: dict[str, Any], model: type[BaseModel]) -> dict[str, Any]:
    """A known key without a value is unset, as in Kubernetes; an unknown one stays, to be reported."""
    types = {field.alias: field.annotation for field in model.model_fields.values()}
    kept = {}
    for key, value in tree.items():
        section = types.get(key)
        if isinstance(value, dict) and isinstance(section, type) and issubclass(section, BaseModel):
            kept[key] = _without_unset(value, section)
        elif value is not None or key not in types:
            kept[key] = value
    return kept


def _planner_errors_of_the_rest(tree: dict[str, Any], error: ValidationError) -> list[FieldError]:
    """Errors of the planner are reported together with the others: they are found without the invalid values."""
    rest = deepcopy(tree)
    for wrong in error.errors():
        *sections, name = wrong["loc"]
        inner: Any = rest
        for section in sections:
            inner = inner.get(section) if isinstance(inner, dict) else None
        if isinstance(inner, dict):
            inner.pop(name, None)
    try:
        return planner_errors(Settings.model_validate(rest, by_alias=True, by_name=False))
    except ValidationError:
        return []


def field_errors(error: ValidationError) -> list[FieldError]:
    schema = Settings.model_json_schema()
    return [_field_error(details, schema) for details in error.errors(include_url=False)]


def _field_error(details: ErrorDetails, schema: dict[str, Any]) -> FieldError:
    steps = [step for step in details["loc"] if step != _KEY_STEP]
    return FieldError(path_of(steps), _message(details, steps, schema))


def _message(details: ErrorDetails, steps: list[str | int], schema: dict[str, Any]) -> str:
    kind = details["type"]
    if kind == "extra_forbidden" and (flag := _FLAGS.get(path_of(steps))):
        return f"is a flag of the process now; start it with {flag}"
    if kind == "extra_forbidden":
        return f"unknown key; {nearest(str(steps[-1]), list(_find(schema, steps[:-1])['properties']))}"
    if kind == "missing":
        return "is missing"
    if kind == "value_error":
        return str(details["ctx"]["error"])
    if kind == "json_invalid":
        return f"cannot be read: {details['ctx']['error']}"
    value = details["input"]
    part = _find(schema, steps)
    text = f"must be {_expected(part, value)} (got {_shown(value)})"
    hints = [text]
    if isinstance(value, bool) and part.get("type") == "string":
        hints.append("YAML reads on and yes as true" if value else "YAML reads off and no as false")
    if steps == ["mode"] and value in (False, "off"):
        hints.append("to stop moves write observe or bind")
    return "; ".join(hints)


def _find(schema: dict[str, Any], steps: Sequence[str | int]) -> dict[str, Any]:
    """The part of the JSON schema at a path."""
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
    """NaN and the infinities are refused."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < float("inf")


def _shown(value: object) -> str:
    if isinstance(value, dict | list):
        return "a mapping" if isinstance(value, dict) else "a list"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else text[:57] + "..."
