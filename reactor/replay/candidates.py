"""The settings that are tried: those in force, and changes of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from itertools import product
from typing import Any

from reactor.errors import InputError, SettingsError
from reactor.replay.answer import Candidate
from reactor.settings.document import read_document
from reactor.settings.load import settings_from_tree
from reactor.settings.model import Mode, Settings

DEFAULT_GRID: Mapping[str, Sequence[Any]] = {
    "happiness.threshold": (0.85, 0.9, 0.95),
    "decision.placementProbability": (0.7, 0.85),
    "planner.requiredRatio": (1.0, 2.0),
    "decision.cooldown": ("60s", "5m"),
}
"""24 settings."""


def grid(given: Sequence[str]) -> dict[str, Sequence[Any]]:
    """`PATH=VALUE,VALUE` each; without any, the default."""
    found: dict[str, Sequence[Any]] = {}
    for each in given:
        path, equals, text = each.partition("=")
        if not equals or not all(path.split(".")) or not text:
            raise InputError(
                f"--set: {each!r} names no values; write PATH=VALUE,VALUE such as happiness.threshold=0.8,0.9"
            )
        found[path] = tuple(_value(part, each) for part in text.split(","))
    return found or dict(DEFAULT_GRID)


def _value(text: str, given: str) -> Any:
    try:
        return read_document(text)
    except SettingsError as error:
        raise InputError(f"--set: {given!r} cannot be read: {error}") from error


def candidates(in_force: Settings, values: Mapping[str, Sequence[Any]]) -> list[tuple[Candidate, Settings]]:
    """Every combination that differs from the settings in force, which come first. A setting that only observes would
    change nothing: what is tried acts."""
    found = [(Candidate("in force", {}), in_force)]
    acting = in_force.model_copy(update={"mode": Mode.ACT})
    for chosen in product(*values.values()):
        changes = dict(zip(values, chosen, strict=True))
        settings = changed(acting, changes)
        if settings == in_force or any(settings == known for _, known in found):
            continue
        before = in_force.model_dump(mode="json", by_alias=True)
        after = settings.model_dump(mode="json", by_alias=True)
        differing = {path: _at(after, path) for path in (*changes, "mode") if _at(after, path) != _at(before, path)}
        name = ", ".join(f"{path.rpartition('.')[2]} {value}" for path, value in differing.items())
        found.append((Candidate(name, differing), settings))
    return found


def changed(settings: Settings, changes: Mapping[str, Any]) -> Settings:
    """Raises SettingsError with every error and its path."""
    return settings_from_tree(in_tree(settings.model_dump(mode="json", by_alias=True), changes))


def in_tree(tree: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """A settings document with these values at these paths."""
    found = deepcopy(dict(tree))
    for path, value in changes.items():
        *sections, name = path.split(".")
        inner = found
        for section in sections:
            inner = inner.setdefault(section, {})
            if not isinstance(inner, dict):
                raise InputError(f"--set: {section} of {path} is a value, not a section of the settings")
        inner[name] = value
    return found


def _at(tree: Any, path: str) -> Any:
    for step in path.split("."):
        tree = tree.get(step) if isinstance(tree, dict) else None
    return tree
