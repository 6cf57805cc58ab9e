from __future__ import annotations

from pathlib import Path

import pytest

from loadtests.tournament.drawing import draw, relative_loads
from loadtests.tournament.scenario import FOLDER, ScenarioError, read, scenarios

NAMES = sorted(path.stem for path in FOLDER.glob("*.yaml"))
SMALL = """
name: small
text: "A test."
seconds: 60
nodes:
  - {count: 2, cores: 1}
apps:
  - {name: app, count: 2}
utilisation: 0.5
"""


def test_there_are_the_scenarios_of_the_issue() -> None:
    assert NAMES == [
        "broken-app",
        "constraints",
        "day-curves",
        "full",
        "healthy",
        "hungrier-version",
        "memory-leak",
        "node-lost",
        "noisy-neighbour",
        "spike",
        "stable-ramp",
    ]


@pytest.mark.parametrize("name", [name for name in NAMES if name != "day-curves"])
def test_a_seed_always_draws_the_same_and_another_seed_something_else(name: str) -> None:
    scenario = scenarios([name])[0]
    assert scenario.name == name
    first, again, other = draw(scenario, 1), draw(scenario, 1), draw(scenario, 2)
    assert first.placement == again.placement
    assert first.apps == again.apps
    assert first.apps != other.apps
    assert set(first.placement) == {app.name for app in first.apps}
    if scenario.hottest is not None and name != "noisy-neighbour":
        assert scenario.hottest[0] <= max(relative_loads(first).values()) <= scenario.hottest[1]


def test_constraints_hold_in_the_first_placement() -> None:
    instance = draw(scenarios(["constraints"])[0], 3)
    zones = {node.name: node.zone for node in instance.nodes}
    tainted = {node.name for node in instance.nodes if node.taints}
    for app in instance.apps:
        nodes = instance.placement[app.name]
        if app.apart:
            assert len(set(nodes)) == len(nodes)
        if app.spread_zones:
            counts = [sum(zones[node] == zone for node in nodes) for zone in "abc"]
            assert max(counts) - min(counts) <= 1
        if not app.rules.tolerations:
            assert not tainted & set(nodes)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("seconds: 60", "seconds: -1"),
        ("utilisation: 0.5", "utilisation: [0.8, 0.5]"),
        ("count: 2, cores", "count: 0, cores"),
        ("name: app,", "name: app, colour: red,"),
        ("utilisation: 0.5", "utilisation: 0.5\nchanges: [{type: earthquake}]"),
        ("utilisation: 0.5", "utilisation: many"),
    ],
)
def test_a_file_that_cannot_be_used_is_named_with_what_is_wrong(tmp_path: Path, change: str, message: str) -> None:
    path = tmp_path / "small.yaml"
    path.write_text(SMALL)
    assert read(path).name == "small"
    path.write_text(SMALL.replace(change, message))
    with pytest.raises(ScenarioError, match=r"small\.yaml"):
        read(path)


def test_an_unknown_scenario_is_named_with_those_that_are_known() -> None:
    with pytest.raises(ScenarioError, match="stable-ramp"):
        scenarios(["nothing"])
