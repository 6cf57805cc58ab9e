"""The planner of the settings: its parameters are checked, and one that waives a promise may not act by default."""

from __future__ import annotations

import pytest

from matching.plan import Promise
from reactor.errors import SettingsError
from reactor.settings.load import dump_settings, parse_settings
from reactor.settings.planner import waived_by


def problems(text: str) -> dict[str, str]:
    with pytest.raises(SettingsError) as wrong:
        parse_settings(text, "here")
    return dict(wrong.value.problems)


def test_parameters_are_read_and_written_back() -> None:
    text = "planner: {name: genetic, parameters: {seed: 7, nodeWeights: {big: {cpu: 0.5}}}}"
    settings = parse_settings(text, "here")
    assert settings.planner.parameters == {"seed": 7, "nodeWeights": {"big": {"cpu": 0.5}}}
    assert parse_settings(dump_settings(settings), "again") == settings


def test_a_wrong_parameter_is_named_by_its_path() -> None:
    assert problems("planner: {name: refine, parameters: {overlod: 2}}") == {
        "planner.parameters.overlod": "is unknown; the parameters here are: overload, weights; did you mean overload?"
    }
    assert problems("planner: {name: refine, parameters: {weights: {cpu: much}}}") == {
        "planner.parameters.weights.cpu": "is 'much'; it must be a number"
    }
    assert problems("planner: {name: refine, parameters: {overload: 0.5}}") == {
        "planner.parameters.overload": "is 0.5; it must be at least 1.0"
    }
    assert list(problems("planner: {parameters: [1]}")) == ["planner.parameters"]


def test_a_planner_that_waives_a_promise_may_not_act_unless_it_is_allowed() -> None:
    observing = parse_settings("mode: observe\nplanner: {name: greedy-published}", "here")
    assert observing.planner.name == "greedy-published"
    found = problems("mode: act\nplanner: {name: greedy-published}")
    assert list(found) == ["planner.name"]
    assert "does not promise budgets, neverWorse" in found["planner.name"]
    assert "planner.allowUnsafe" in found["planner.name"]
    allowed = parse_settings("mode: act\nplanner: {name: greedy-published, allowUnsafe: true}", "here")
    assert allowed.planner.allow_unsafe
    assert parse_settings("mode: act\nplanner: {name: greedy}", "here").planner.name == "greedy"


def test_the_paper_may_not_act_unless_it_is_allowed() -> None:
    found = problems("mode: act\nplanner: {name: stable-paper}")
    assert "nobodyLeftOut" in found["planner.name"]
    assert parse_settings("mode: act\nplanner: {name: stable-paper, allowUnsafe: true}", "here").planner.allow_unsafe


def test_dumping_is_a_parameter_of_stable() -> None:
    settings = parse_settings("mode: act\nplanner: {parameters: {dumping: allow}}", "here")
    assert settings.planner.parameters == {"dumping": "allow"}
    assert problems("planner: {parameters: {dumping: sometimes}}") == {
        "planner.parameters.dumping": "is 'sometimes'; it must be never or allow"
    }


def test_what_a_planner_waives_is_known_by_its_name() -> None:
    assert Promise.RESTRAINT in waived_by("stable-paper")
    assert waived_by("stable") == frozenset() == waived_by("nobody")


def test_errors_of_the_planner_are_reported_with_the_rest() -> None:
    found = problems("mode: act\nhapiness: {}\nplanner: {name: stable-paper, maxMovesPerNode: 0, inertia: low}")
    assert set(found) == {"hapiness", "planner.maxMovesPerNode", "planner.inertia", "planner.name"}
    assert "nobodyLeftOut" in found["planner.name"]
    assert set(problems("planner: {name: 3, parameters: 4}")) == {"planner.name", "planner.parameters"}
