"""Settings from text and back. Everything that is wrong is found at once and raised as one SettingsError."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

import yaml
from pydantic import BaseModel, ValidationError

from reactor.errors import SettingsError
from reactor.settings.document import Problem, Writer, read_document
from reactor.settings.model import Settings
from reactor.settings.planner_check import planner_problems
from reactor.settings.problems import explain

CONFIG_MAP_KEY = "settings.yaml"


def parse_settings(text: str, source: str) -> Settings:
    """A settings document, or the manifest of a ConfigMap that holds one; YAML or JSON. `source` is for the message."""
    try:
        return _validated(_settings_tree(text))
    except SettingsError as error:
        raise SettingsError(error.problems, source) from None


def dump_settings(settings: Settings) -> str:
    """YAML that `parse_settings` reads as the same settings, defaults written out."""
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


def _validated(tree: dict[str, Any]) -> Settings:
    # As JSON, because pydantic is strict about types there without refusing lists for tuples and text for enums.
    text = json.dumps(_without_unset(tree, Settings))
    try:
        settings = Settings.model_validate_json(text, strict=True, by_alias=True, by_name=False)
    except ValidationError as error:
        raise SettingsError([*explain(error), *_planner_of_the_rest(tree, error)]) from None
    if problems := planner_problems(settings):
        raise SettingsError(problems)
    return settings


def _without_unset(tree: dict[str, Any], model: type[BaseModel]) -> dict[str, Any]:
    """A known key with nothing after it is unset, as in Kubernetes; an unknown one stays, to be reported."""
    types = {field.alias: field.annotation for field in model.model_fields.values()}
    kept = {}
    for key, value in tree.items():
        section = types.get(key)
        if isinstance(value, dict) and isinstance(section, type) and issubclass(section, BaseModel):
            kept[key] = _without_unset(value, section)
        elif value is not None or key not in types:
            kept[key] = value
    return kept


def _planner_of_the_rest(tree: dict[str, Any], error: ValidationError) -> list[Problem]:
    """What is wrong with the planner is told along with what is wrong elsewhere: the wrong values are left out."""
    rest = deepcopy(tree)
    for wrong in error.errors():
        *sections, name = wrong["loc"]
        inner: Any = rest
        for section in sections:
            inner = inner.get(section) if isinstance(inner, dict) else None
        if isinstance(inner, dict):
            inner.pop(name, None)
    try:
        return planner_problems(Settings.model_validate(rest, by_alias=True, by_name=False))
    except ValidationError:
        return []
