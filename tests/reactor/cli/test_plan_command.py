"""`rematch plan` with every planner, its parameters, and all of them side by side."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from matching.registry import known_planners
from reactor.cli import main


@dataclass(frozen=True, slots=True)
class Ran:
    exit_code: int
    stdout: str
    stderr: str


Rematch = Callable[..., Ran]
NOW = "2026-11-16T12:00:00Z"


def _meta(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "uid": f"uid-{name}", "resourceVersion": "1", "creationTimestamp": NOW, **more}


def _node(name: str, bandwidth: str | None) -> dict[str, Any]:
    room = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    annotations = {"rematch.io/bandwidth-bps": bandwidth} if bandwidth else {}
    ready = [{"type": "Ready", "status": "True", "lastTransitionTime": NOW}]
    status = {"allocatable": room, "capacity": room, "conditions": ready}
    return {"apiVersion": "v1", "kind": "Node", "metadata": _meta(name, annotations=annotations), "status": status}


def _pod(name: str, node: str) -> dict[str, Any]:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "uid-web", "controller": True}
    meta = _meta(name, namespace="shop", ownerReferences=[owner], annotations={"rematch.io/network-bps": "10M"})
    container = {"name": "srv", "image": "web", "resources": {"requests": {"cpu": "500m", "memory": "256Mi"}}}
    ready = [{"type": "Ready", "status": "True", "lastTransitionTime": NOW}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": meta,
        "spec": {"nodeName": node, "schedulerName": "rematch", "containers": [container]},
        "status": {"phase": "Running", "conditions": ready, "startTime": NOW},
    }


@pytest.fixture
def dump(tmp_path: Path) -> str:
    """Six pods on one of three nodes; of the third one's bandwidth nothing is known."""
    web = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": _meta("web", namespace="shop"),
        "spec": {"replicas": 6},
        "status": {"replicas": 6},
    }
    nodes = [_node("n1", "100M"), _node("n2", "100M"), _node("n3", None)]
    items = [*nodes, web, *(_pod(f"web-{at}", "n1") for at in range(6))]
    path = tmp_path / "dump.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    return str(path)


@pytest.fixture
def rematch(dump: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Rematch:
    """The whole command with its exit code, as the shell sees it."""

    def run(*arguments: str) -> Ran:
        monkeypatch.setattr(sys, "argv", ["rematch", "plan", "-f", dump, *arguments])
        code = 0
        try:
            main.main()
        except SystemExit as stop:
            code = int(stop.code or 0)
        captured = capsys.readouterr()
        return Ran(code, captured.out, captured.err)

    return run


@pytest.mark.parametrize("planner", sorted(set(known_planners()) - {"function"}))
def test_every_planner_runs(planner: str, rematch: Rematch) -> None:
    result = rematch("--planner", planner, "-o", "json")
    assert result.exit_code == 0
    plan = json.loads(result.stdout)
    assert plan["planner"] == planner
    assert plan["certificate"]["feasible"]
    assert len(plan["moves"]) + len(plan["stays"]) == 6


def test_a_planner_from_the_users_code_runs(rematch: Rematch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "users_planner.py").write_text("def plan(pods, nodes): return {pods[0].name: nodes[1].name}")
    monkeypatch.syspath_prepend(tmp_path)
    result = rematch("--planner", "function", "--set", "path=users_planner:plan", "-o", "json")
    assert [(move["pod"], move["to"]) for move in json.loads(result.stdout)["moves"]] == [("shop/web-0", "n2")]


def test_parameters_on_the_command_line(rematch: Rematch, tmp_path: Path) -> None:
    settings = tmp_path / "settings.yaml"
    settings.write_text("planner: {name: refine, parameters: {overload: 3.5}}\n")
    assert json.loads(rematch("--settings", str(settings), "-o", "json").stdout)["moves"] == []
    given = rematch("--settings", str(settings), "--set", "overload=1", "-o", "json")
    assert len(json.loads(given.stdout)["moves"]) == 4
    other = rematch("--settings", str(settings), "--planner", "greedy", "--set", "weights.memory=1", "-o", "json")
    assert json.loads(other.stdout)["planner"] == "greedy"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--planner", "refin"], "planner.name: no planner 'refin' is installed; did you mean refine?"),
        (["--planner", "refine", "--set", "overlod=2"], "planner.parameters.overlod: is unknown; the parameters here"),
        (["--planner", "refine", "--set", "overload=.5"], "planner.parameters.overload: is 0.5; it must be at least"),
        (["--planner", "refine", "--set", "overload"], "--set: 'overload' names no value; write NAME=VALUE"),
        (["--planner", "refine", "--set", "weights.=2"], "--set: 'weights.=2' names no value"),
        (["--planner", "refine", "--set", "overload={"], "--set: 'overload={' cannot be read"),
        (["--planner", "refine", "--set", "overload=1", "--set", "overload.x=1"], "--set: overload.x is inside of"),
        (["--planner", "greedy", "--set", "weights.gpu=1"], "planner greedy: parameter weights: the problem has no"),
        (["--planner", "function"], "planner.parameters.path: is ''"),
        (
            ["--planner", "function", "--set", "path=nowhere:x"],
            "planner function: parameter path: 'nowhere:x'",
        ),
    ],
)
def test_an_error_is_one_clear_line(arguments: list[str], says: str, rematch: Rematch) -> None:
    result = rematch(*arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1
    assert result.stderr.startswith(f"error: {says}")


def test_all_planners_side_by_side(rematch: Rematch) -> None:
    result = rematch("--compare")
    assert result.exit_code == 0
    head, *rows = result.stdout.splitlines()
    assert (
        " ".join(head.split())
        == "PLANNER MOVES UNPLACED SPREAD OVERLOADED BLOCKING CURED WATTS IDLE FEASIBLE TIME WAIVES"
    )
    assert [row.split()[0] for row in rows if row][:-1] == sorted(set(known_planners()) - {"function"})
    assert rows[-1].startswith("function is left out: parameter path")
    cells = next(row for row in rows if row.startswith("greedy-published")).split()
    assert cells[1] == "4"
    assert cells[-2:] == ["budgets,", "neverWorse"]


def test_the_comparison_for_programs(rematch: Rematch) -> None:
    document = json.loads(rematch("--compare", "--planner", "refine", "--set", "overload=1", "-o", "json").stdout)
    rows = {row["planner"]: row for row in document["planners"]}
    assert rows.keys() == set(known_planners())
    assert rows["refine"]["moves"] == 4
    assert rows["refine"]["spread"]["after"] < rows["refine"]["spread"]["before"]
    power = rows["refine"]["power"]
    assert power["before"]["watts"] == pytest.approx(power["after"]["watts"]), "the same work on equal nodes"
    assert (power["before"]["idleNodes"], power["after"]["idleNodes"]) == (2, 0)
    assert rows["network"]["moves"] == 3, "the load of n3 is unknown, so that half of them go to n2"
    assert "path" in rows["function"]["error"]
    assert {"unhappy", "planners"} == document.keys()
    assert rematch("--compare", "-o", "wide").exit_code == 2


def test_wide_explains_every_move(rematch: Rematch) -> None:
    lines = rematch("--planner", "refine", "-o", "wide").stdout.splitlines()
    assert lines[0].startswith("shop/web-")
    assert " moves from n1 to n" in lines[0]
    assert lines[1].startswith("  because n1 is heavy: at 75 %")
    assert any(line.startswith("  not n1: would end at ") for line in lines)


def test_a_planner_that_waives_a_promise_is_not_applied(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["rematch", "plan", "--apply", "--planner", "refine-published"])
    with pytest.raises(SystemExit) as stop:
        main.main()
    assert stop.value.code == 2
    assert "refine-published does not promise budgets, neverWorse" in capsys.readouterr().err
