"""Planners by name, also those of other packages."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from importlib.metadata import EntryPoint, EntryPoints
from types import ModuleType
from typing import ClassVar

import pytest

from matching import registry
from matching.parameters import ParameterError
from matching.plan import Plan, Promise
from matching.problem import Problem, ProblemError
from matching.registry import known_planners, load_planner


@dataclass(frozen=True, slots=True)
class Foreign:
    """What another package would register."""

    patience: int = 3

    name: ClassVar[str] = "foreign"
    waives: ClassVar[frozenset[Promise]] = frozenset()

    def plan(self, problem: Problem) -> Plan:
        raise NotImplementedError


def _register(monkeypatch: pytest.MonkeyPatch, target: str) -> None:
    points = EntryPoints([EntryPoint("foreign", target, registry.GROUP)])
    monkeypatch.setattr(registry, "entry_points", points.select)


def test_another_package_adds_a_planner(monkeypatch: pytest.MonkeyPatch) -> None:
    package = ModuleType("another_package")
    package.Foreign = Foreign  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "another_package", package)
    _register(monkeypatch, "another_package:Foreign")
    assert known_planners() == ("foreign",)
    assert load_planner("foreign", {"patience": 9}) == Foreign(patience=9)
    with pytest.raises(ParameterError, match="parameter pateince: is unknown; the parameters here are: patience"):
        load_planner("foreign", {"pateince": 9})


def test_what_is_no_planner_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    _register(monkeypatch, "matching.problem:Pod")
    with pytest.raises(ProblemError, match=r"matching.problem:Pod.*lacks name, waives, plan"):
        load_planner("foreign")
    _register(monkeypatch, "matching.nowhere:Pod")
    with pytest.raises(ProblemError, match="cannot be loaded"):
        load_planner("foreign")
    with pytest.raises(ProblemError, match=r"unknown planner 'grady'.*foreign"):
        load_planner("grady")
