"""Stored plans and problems: shown by `rematch history`, made again by `rematch plan -f`."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, fields
from pathlib import Path

import pytest

from matching.plan import Plan
from matching.problem import Node, Pod, Problem
from matching.registry import load_planner
from matching.serialization import problem_to_json
from matching.testing import random_problem
from reactor.decision.decide import Decision, Trigger, Unhappy
from reactor.decision.evidence import Evidence, Part, PartName, RecentCounts
from reactor.execution.cycle_outcome import Rematch
from reactor.record.history import NOT_COUNTED, History
from reactor.settings.model import Mode, Planner
from storage.rows import ProblemRow
from storage.store import Store
from tests.support.clock import NOW
from tests.support.cluster import make_happiness
from tests.support.command import Command

PLANNERS = [
    Planner(),
    Planner(name="refine", parameters={"overload": 1.1}),
    Planner(name="genetic", parameters={"seed": 7, "generations": 3}),
]


@dataclass(frozen=True)
class Stored:
    path: Path
    problem: Problem
    plan: Plan


async def _fill(path: Path, problem: Problem, plan: Plan, planner: Planner) -> None:
    async with await Store.open(path) as store:
        history, rematch = History(store), Rematch("p1", plan, problem)
        history.plan("c1", Decision(NOW, Trigger.INTERVAL), rematch, Mode.OBSERVE)
        history.problem(rematch, planner)
        await history.complete_plans()
        history.plan("c2", Decision(NOW, Trigger.INTERVAL), Rematch("p2", plan, problem), Mode.OBSERVE)
        store.add_problem(ProblemRow("p2", None, "not stored: 5.0 MiB compressed are more than 4 MiB"))


def fill(folder: Path, planner: Planner, seed: int = 4) -> Stored:
    problem = random_problem(seed, pods=20, nodes=5)
    plan = load_planner(planner.name, planner.parameters).plan(problem)
    stored = Stored(folder / "rematch.db", problem, plan)
    asyncio.run(_fill(stored.path, problem, plan, planner))
    return stored


@pytest.mark.parametrize("planner", PLANNERS, ids=lambda planner: planner.name)
@pytest.mark.parametrize("seed", [2, 4, 6])
def test_a_stored_problem_gives_the_stored_plan_byte_for_byte(
    rematch: Command, tmp_path: Path, planner: Planner, seed: int
) -> None:
    store = fill(tmp_path, planner, seed).path
    problem = tmp_path / "problem.json"
    problem.write_text(rematch("history", "--store", store, "--problem", "p1").out)

    again = rematch("plan", "-f", problem, "-o", "json")

    assert (again.code, again.err) == (0, "")
    assert again.out == rematch("history", "--store", store, "--plan", "p1", "-o", "json").out
    assert again.out == rematch("plan", "-f", "-", "-o", "json", stdin=problem.read_bytes()).out


async def test_counting_the_blocking_pairs_gives_a_plan_no_new_place_in_the_history(tmp_path: Path) -> None:
    problem = random_problem(4, pods=20, nodes=5)
    rematch = Rematch("p1", load_planner("stable", {}).plan(problem), problem)
    async with await Store.open(tmp_path / "rematch.db") as store:
        history = History(store)
        history.plan("c1", Decision(NOW, Trigger.INTERVAL), rematch, Mode.OBSERVE)
        await store.flush()
        (before,) = await store.plans(10)
        await history.complete_plans()
        await store.flush()
        (after,) = await store.plans(10)
    assert (after.seq, after.blocking_pairs) == (before.seq, rematch.plan.certificate.blocking_pairs)
    assert NOT_COUNTED in before.document
    assert NOT_COUNTED not in after.document


def test_a_stored_plan_has_no_line_for_pods_that_stay(rematch: Command, tmp_path: Path) -> None:
    stored = fill(tmp_path, Planner())

    document = json.loads(rematch("history", "--store", stored.path, "--plan", "p1", "-o", "json").out)

    assert "stays" not in document
    assert document["staying"] == len(stored.plan.stays) > 0
    assert [move["pod"] for move in document["moves"]] == [move.pod for move in stored.plan.moves]
    assert len(document["moves"][0]["reasons"]) > 0


def test_a_stored_plan_is_shown_as_a_table(rematch: Command, tmp_path: Path) -> None:
    stored = fill(tmp_path, Planner())

    shown = rematch("history", "--store", stored.path, "--plan", "p1").out

    assert shown.startswith("plan p1 of ")
    assert all(move.pod in shown for move in stored.plan.moves)
    assert f"{len(stored.plan.stays)} stay" in shown
    assert [line.split()[4] for line in rematch("history", "--store", stored.path).out.splitlines()[1:]] == ["p2", "p1"]


def test_a_stored_plan_is_shown_with_the_evidence_that_decided(rematch: Command, tmp_path: Path) -> None:
    stored = fill(tmp_path, Planner())
    moved = stored.plan.moves[0]
    parts = (Part(PartName.PRIOR, 0.1, "mostly ill itself"), Part(PartName.LOAD, 599.98765, "n1 uses 76% of its cpu"))
    evidence = Evidence(parts, RecentCounts(0.0, 2.0, 0.0, 0.0, 2.0))
    unhappy = Unhappy(moved.uid, moved.pod, make_happiness(10.0), "n1 is crowded", evidence)

    async def add() -> None:
        async with await Store.open(stored.path) as store:
            decision = Decision(NOW, Trigger.UNHAPPY, (unhappy,))
            History(store).plan("c3", decision, Rematch("p3", stored.plan, stored.problem), Mode.ACT)

    asyncio.run(add())
    shown = rematch("history", "--store", stored.path, "--plan", "p3").out
    (row,) = [row for row in json.loads(rematch("history", "--store", stored.path, "-o", "json").out) if row["unhappy"]]

    assert shown.splitlines()[-3].split() == ["UNHAPPY", "EVIDENCE", "RATIO", "WHAT", "IS", "KNOWN"]
    assert " ".join(shown.splitlines()[-1].split()) == f"{moved.pod} load 600 n1 uses 76% of its cpu"
    assert (row["plan"], row["unhappy"][0]["placementProbability"]) == ("p3", 0.9836)
    assert [part["name"] for part in row["unhappy"][0]["evidence"]] == ["prior", "load"]
    assert "unhappy" not in json.loads(rematch("history", "--store", stored.path, "--plan", "p3", "-o", "json").out)


def test_a_stored_problem_can_be_planned_in_another_way(rematch: Command, tmp_path: Path) -> None:
    stored = fill(tmp_path, Planner())
    problem = tmp_path / "problem.json"
    problem.write_text(rematch("history", "--store", stored.path, "--problem", "p1").out)

    other = json.loads(rematch("plan", "-f", problem, "--planner", "greedy", "-o", "json").out)
    compared = json.loads(rematch("plan", "-f", problem, "--compare", "-o", "json").out)

    assert other["planner"] == "greedy"
    (row,) = [row for row in compared["planners"] if row["planner"] == "stable"]
    assert row["moves"] == len(stored.plan.moves)


def test_a_bare_problem_is_planned_too(rematch: Command, tmp_path: Path) -> None:
    problem = random_problem(4, pods=20, nodes=5)
    file = tmp_path / "problem.json"
    file.write_bytes(problem_to_json(problem))

    moves = json.loads(rematch("plan", "-f", file, "-o", "json").out)["moves"]

    assert [move["pod"] for move in moves] == [move.pod for move in load_planner("stable").plan(problem).moves]


def test_a_problem_is_no_dump_and_no_part_of_one(rematch: Command, tmp_path: Path) -> None:
    file, other = tmp_path / "problem.json", tmp_path / "dump.json"
    file.write_bytes(problem_to_json(random_problem(4)))
    other.write_text('{"kind": "List", "items": []}')

    both = rematch("plan", "-f", file, "-f", other)
    explained = rematch("explain", "-f", file, "default/pod-1")

    assert (both.code, explained.code) == (2, 2)
    assert "leave out the other files" in both.err
    assert "explain needs what kubectl printed" in explained.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--plan", "nope"], "there is no plan nope"),
        (["--problem", "nope"], "no problem is stored for plan nope"),
        (["--problem", "p2"], "the problem of plan p2 is not stored: 5.0 MiB"),
    ],
)
def test_a_missing_plan_or_problem_is_one_clear_line(
    rematch: Command, tmp_path: Path, arguments: list[str], message: str
) -> None:
    result = rematch("history", "--store", fill(tmp_path, Planner()).path, *arguments)

    assert (result.code, result.out) == (2, "")
    assert result.err.count("\n") == 1
    assert message in result.err


@pytest.mark.parametrize("arguments", [["--plan", "p1"], ["--plan", "p1", "--problem", "p1"]])
def test_stored_plans_are_read_from_a_store(rematch: Command, arguments: list[str]) -> None:
    result = rematch("history", *arguments)

    assert result.code == 2
    assert "Error:" in result.err


@pytest.mark.parametrize("option", [["--scope", "unhappy"], ["--now", "2026-11-16T12:00:00Z"], ["--needs", "requests"]])
def test_options_that_are_part_of_the_problem_are_refused(rematch: Command, tmp_path: Path, option: list[str]) -> None:
    file = tmp_path / "problem.json"
    file.write_bytes(problem_to_json(random_problem(0)))

    result = rematch("plan", "-f", file, *option)

    assert result.code == 2
    assert f"{option[0]} is part of the problem" in result.err


@pytest.mark.parametrize("end", [b"", b"}", b'"version": 1}', b'"version": 7, "problem": {}}'])
def test_a_damaged_problem_is_one_clear_line(rematch: Command, tmp_path: Path, end: bytes) -> None:
    file = tmp_path / "problem.json"
    file.write_bytes(b'{"kind": "RematchStoredProblem", ' + end)

    result = rematch("plan", "-f", file)

    assert (result.code, result.out) == (2, "")
    assert result.err.count("\n") == 1


async def test_problems_that_cannot_be_written_in_time_do_not_pile_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = random_problem(4, pods=20, nodes=5)
    monkeypatch.setattr("reactor.record.history.MOST_WAITING_PODS", 2 * len(problem.pods))
    plan = load_planner("stable", {}).plan(problem)
    async with await Store.open(tmp_path / "rematch.db") as store:
        history = History(store)
        for number in range(4):
            rematch = Rematch(f"p{number}", plan, problem)
            history.plan(f"c{number}", Decision(NOW, Trigger.INTERVAL), rematch, Mode.OBSERVE)
            history.problem(rematch, Planner())
        await history.complete_plans()
        await store.flush()
        notes = [found.note for number in range(4) if (found := await store.problem(f"p{number}")) is not None]
        counted = {row.id: NOT_COUNTED not in row.document for row in await store.plans(10)}
    assert notes == [*["not stored: newer plans came too fast"] * 2, "", ""]
    assert counted == {"p0": False, "p1": False, "p2": True, "p3": True}


async def test_a_cycle_may_go_before_each_plan_and_each_column_of_a_problem(tmp_path: Path) -> None:
    problem = random_problem(4, pods=20, nodes=5)
    rematch = Rematch("p1", load_planner("stable", {}).plan(problem), problem)
    waited = 0

    async def between() -> None:
        nonlocal waited
        waited += 1

    async with await Store.open(tmp_path / "rematch.db") as store:
        history = History(store)
        for _ in range(2):
            history.plan("c1", Decision(NOW, Trigger.INTERVAL), rematch, Mode.OBSERVE)
        history.problem(rematch, Planner())
        await history.complete_plans(between)
    assert waited > 2 + len(fields(Pod)) + len(fields(Node))
