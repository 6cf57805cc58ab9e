"""Planner parameters by their public names: names, types, and values that a planner refuses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import pytest

from matching.parameters import ParameterError
from matching.plan import Plan, Promise
from matching.planners.genetic import GeneticPlanner
from matching.planners.kse import RefinePlanner
from matching.problem import Problem, ProblemError
from reactor.settings.planner import checked_parameters, make_planner, parameter_errors


@dataclass(frozen=True, slots=True)
class Foreign:
    """What another package would register."""

    patience: int = 3
    wait_for: tuple[str, ...] = ()
    limits: Mapping[str, float] = field(default_factory=dict)
    label: str | None = None
    eager: bool = False

    name: ClassVar[str] = "foreign"
    waives: ClassVar[frozenset[Promise]] = frozenset()

    def plan(self, problem: Problem) -> Plan:
        raise NotImplementedError


def test_defaults_and_given_values() -> None:
    assert make_planner("refine", {}) == RefinePlanner()
    given = make_planner("refine", {"overload": 2, "weights": {"cpu": 1, "memory": 0.5}})
    assert given == RefinePlanner(overload=2.0, weights={"cpu": 1.0, "memory": 0.5})
    assert make_planner("genetic", {"nodeWeights": {"big": {"cpu": 0.5}}, "cMax": 1}) == GeneticPlanner(
        node_weights={"big": {"cpu": 0.5}}, c_max=1.0
    )


def test_every_kind_of_value() -> None:
    given = {"patience": 5, "waitFor": ["a", "b"], "limits": {"cpu": 1}, "label": None, "eager": True}
    values: dict[str, Any] = checked_parameters(Foreign, given)
    assert Foreign(**values) == Foreign(5, ("a", "b"), {"cpu": 1.0}, None, True)


@pytest.mark.parametrize(
    ("given", "parameter", "says"),
    [
        ({"pateince": 1}, "pateince", "eager, label, limits, patience, waitFor"),
        ({"wait_for": []}, "wait_for", "unknown"),
        ({"patience": 1.5}, "patience", "whole number"),
        ({"patience": True}, "patience", "whole number"),
        ({"patience": "3"}, "patience", "whole number"),
        ({"eager": 1}, "eager", "true or false"),
        ({"waitFor": "ab"}, "waitFor", "a list"),
        ({"waitFor": ["a", 1]}, "waitFor[1]", "text"),
        ({"limits": [1]}, "limits", "a mapping"),
        ({"limits": {"cpu": "x"}}, "limits.cpu", "a number"),
        ({"limits": {"cpu": float("nan")}}, "limits.cpu", "a number"),
        ({"label": 1}, "label", "text or nothing"),
    ],
)
def test_a_wrong_parameter_is_named_with_the_fix(given: dict[str, Any], parameter: str, says: str) -> None:
    with pytest.raises(ParameterError, match=says) as wrong:
        checked_parameters(Foreign, given)
    assert wrong.value.parameter == parameter
    assert str(wrong.value).startswith(f"parameter {parameter}: ")


def test_every_wrong_parameter_is_reported() -> None:
    errors = parameter_errors(Foreign, {"patience": 1.5, "limits": {"cpu": "x", "memory": True}, "pateince": 1})
    assert [error.path for error in errors] == ["patience", "limits.cpu", "limits.memory", "pateince"]
    assert errors[-1].message.endswith("; did you mean patience?")


def test_numbers_must_be_finite_and_no_booleans() -> None:
    for value in (float("inf"), float("-inf"), float("nan"), True, "1"):
        assert [error.path for error in parameter_errors(Foreign, {"limits": {"cpu": value}})] == ["limits.cpu"]


@pytest.mark.parametrize(
    ("planner", "given", "parameter"),
    [
        ("refine", {"overload": 0.9}, "overload"),
        ("refine", {"weights": {"cpu": -1}}, "weights.cpu"),
        ("greedy", {"weights": {}}, "weights"),
        ("genetic", {"population": 1}, "population"),
        ("genetic", {"mutation": 2}, "mutation"),
        ("genetic", {"elites": 100}, "elites"),
        ("genetic", {"nodeWeights": {"n": {"cpu": 0}}}, "nodeWeights.n"),
        ("network", {"gain": -1}, "gain"),
        ("latency", {"measurements": 0}, "measurements"),
        ("latency", {"quiet": -1}, "quiet"),
        ("latency", {"atOnce": 2}, "atOnce"),
        ("function", {}, "path"),
    ],
)
def test_values_that_make_no_sense_are_refused(planner: str, given: dict[str, Any], parameter: str) -> None:
    with pytest.raises(ParameterError) as wrong:
        make_planner(planner, given)
    assert wrong.value.parameter == parameter


def test_an_axis_that_the_problem_does_not_have_is_named() -> None:
    with pytest.raises(ProblemError, match=r"weights.*'disk'.*cpu, memory"):
        make_planner("greedy", {"weights": {"disk": 1}}).plan(Problem(("cpu", "memory"), (), ()))
    with pytest.raises(ProblemError, match=r"metric.*'disk'.*cpu"):
        make_planner("refine-published", {"metric": "disk"}).plan(Problem(("cpu",), (), ()))
