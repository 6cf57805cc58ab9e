"""A problem and its plan are the same after they were written as JSON and read again."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from matching.plan import Plan
from matching.problem import Latency, LatencyMeasurement, Node, Options, Pod, Problem, ProblemError, Rules, Strategy
from matching.registry import known_planners, load_planner
from matching.serialization import plan_from_json, plan_to_json, problem_from_json, problem_to_json
from matching.testing import random_problem

Make = Callable[..., Any]

numbers = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**62), 2**62)
amounts = st.lists(numbers, max_size=3).map(tuple)
labels = st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=2)
pods = st.builds(Pod, usage=amounts, request=amounts, peak=amounts, rules=st.builds(Rules), labels=labels)
nodes = st.builds(Node, allocatable=amounts, background=amounts, labels=labels, max_pods=st.integers(0, 2**31))
options = st.builds(Options, inertia=numbers, headroom=numbers, relief=numbers, soft_weight=numbers)
measurements = st.dictionaries(st.text(max_size=5), st.builds(LatencyMeasurement, numbers, numbers), max_size=2)
any_problem = st.builds(
    Problem,
    pods=st.lists(pods, max_size=4).map(tuple),
    nodes=st.lists(nodes, max_size=3).map(tuple),
    options=options,
    namespaces=st.dictionaries(st.text(max_size=5), labels, max_size=2),
    latency=st.none() | st.builds(Latency, numbers, numbers, last=measurements),
)
written = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))


@written
@given(any_problem)
def test_a_problem_is_read_as_it_was_written(problem: Problem) -> None:
    data = problem_to_json(problem)
    again = problem_from_json(data)
    assert again == problem
    assert problem_to_json(again) == data


@pytest.mark.parametrize("name", [name for name in known_planners() if name != "function"])
@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_the_plan_of_a_read_problem_is_the_same_to_the_byte(name: str, data: st.DataObject) -> None:
    problem = random_problem(*data.draw(st.tuples(st.integers(0, 2**31), st.integers(0, 8), st.integers(1, 4))))
    planner = load_planner(name, {"population": 12, "generations": 8} if name == "genetic" else {})
    plan = planner.plan(problem)
    again = planner.plan(problem_from_json(problem_to_json(problem)))
    assert again == plan
    assert json.dumps(plan_to_json(again)) == json.dumps(plan_to_json(plan))
    assert plan_from_json(json.loads(json.dumps(plan_to_json(plan)))) == plan
    compact = json.loads(json.dumps(plan_to_json(plan, stays=False)))
    assert compact["staying"] == len(plan.stays)
    assert plan_from_json(compact) == replace(plan, stays=())


def test_equal_values_are_written_once(pod: Make, node: Make, problem: Make) -> None:
    pods = [pod(f"p{at}", labels={"app": "web"}, rules=Rules(node_selector=(("zone", "a"),))) for at in range(50)]
    document = json.loads(problem_to_json(problem(pods, [node("n")])))
    assert document["pods"]["rules"] == {"table": [{"nodeSelector": [["zone", "a"]]}]}
    assert document["pods"]["labels"] == {"table": [{"app": "web"}]}
    read = problem_from_json(problem_to_json(problem(pods, [node("n")])))
    assert len({id(each.rules) for each in read.pods}) == 1


def test_whole_numbers_and_fractions_stay_apart(pod: Make, node: Make, problem: Make) -> None:
    pods = [pod("a", request=(1, 1)), pod("b", request=(1.0, 1.0))]
    read = problem_from_json(problem_to_json(problem(pods, [node("n")])))
    assert [type(each.request[0]) for each in read.pods] == [int, float]


@pytest.mark.parametrize("wrong", [math.nan, math.inf, -math.inf])
def test_not_a_number_is_refused_by_the_writer(pod: Make, node: Make, problem: Make, wrong: float) -> None:
    pods = [pod("a"), pod("b", usage=(1, wrong))]
    with pytest.raises(ProblemError, match=r"problem\.pods\.usage\[1\]\[1\]"):
        problem_to_json(problem(pods, [node("n")]))


@pytest.fixture
def document(pod: Make, node: Make, problem: Make) -> dict[str, Any]:
    pods = [pod("a", labels={"app": "web"}), pod("b", node="n")]
    return json.loads(problem_to_json(problem(pods, [node("n"), node("m")])))  # type: ignore[no-any-return]


def _changed(document: dict[str, Any], path: str, value: object) -> bytes:
    *parents, last = path.split(".")
    inside = document
    for name in parents:
        inside = inside[int(name)] if isinstance(inside, list) else inside[name]
    inside[int(last) if isinstance(inside, list) else last] = value
    return json.dumps(document).encode()


@pytest.mark.parametrize(
    ("path", "value", "named"),
    [
        ("kind", "List", "problem.kind"),
        ("version", 2, r"problem.version is 2, but .* reads up to 1"),
        ("version", True, "problem.version"),
        ("version", "1", "problem.version"),
        ("axes", "cpu", "problem.axes must be a list"),
        ("axes", [1], r"problem.axes\[0\] must be a string"),
        ("colour", "red", "problem.colour is unknown"),
        ("options.scope", "everything", "problem.options.scope must be one of cluster"),
        ("options.inertia", "much", "problem.options.inertia must be a number"),
        ("options.inertia", math.nan, "problem.options.inertia must be a finite number"),
        ("options.maxMoves", 1.5, "problem.options.maxMoves must be a number"),
        ("options.onlyIfBetter", 1, "problem.options.onlyIfBetter must be a boolean"),
        ("namespaces", {"a": {"b": 1}}, "problem.namespaces.a.b must be a string"),
        ("latency", [], "problem.latency must be an object"),
        ("latency", {"now": 1}, "problem.latency.movedAt is missing"),
        ("pods", [], "problem.pods must be an object"),
        ("pods.key", None, "problem.pods.key must be a list"),
        ("pods.key", ["a/b"], "problem.pods.uid has 2 values for 1 rows"),
        ("pods.usage.1", [math.inf, 1], r"problem.pods.usage\[1\]\[0\] must be a finite number"),
        ("pods.usage.1", [10**400, 1], r"problem.pods.usage\[1\]\[0\] must be a finite number"),
        ("pods.usage.1", 3, r"problem.pods.usage\[1\] must be a list"),
        ("pods.priority", {"table": [10**30]}, r"problem.pods.priority.table\[0\] must be a finite number"),
        ("pods.node.rows", [0, 2], "problem.pods.node.rows must be numbers from 0 to 1"),
        ("pods.node.rows", [0, -1], "problem.pods.node.rows must be numbers from 0 to 1"),
        ("pods.node.rows", [0, True], r"problem.pods.node.rows\[1\] must be a number"),
        ("pods.node.rows", [0], "problem.pods.node has 1 values for 2 rows"),
        ("pods.rules", {"table": [{"ports": [{"port": "80"}]}]}, r"rules.table\[0\].ports\[0\].port must be a number"),
        ("pods.rules", {"table": [{"preferred": {"nodes": [[1]]}}]}, r"preferred.nodes\[0\] must have 2 values"),
        ("pods.rules", {"table": [{"volumes": [[[]]]}]}, r"volumes\[0\]\[0\] must be an object"),
        ("pods.strategy", {"table": ["teleport"]}, r"problem.pods.strategy.table\[0\] must be one of evict"),
        ("nodes.colour", [], "problem.nodes.colour is unknown"),
    ],
)
def test_a_wrong_field_is_named(document: dict[str, Any], path: str, value: object, named: str) -> None:
    with pytest.raises(ProblemError, match=named):
        problem_from_json(_changed(document, path, value))


@pytest.mark.parametrize("data", [b"", b"[", b"null", b"[]", b"\xff\xfe\x00", b"[" * 100_000, b"1" * 10_000])
def test_what_is_not_a_problem_is_refused(data: bytes) -> None:
    with pytest.raises(ProblemError, match="problem"):
        problem_from_json(data)


def test_a_truncated_problem_is_refused(document: dict[str, Any]) -> None:
    data = json.dumps(document).encode()
    for size in range(len(data)):
        with pytest.raises(ProblemError, match="not valid JSON"):
            problem_from_json(data[:size])


def test_a_field_that_an_older_version_did_not_write_has_its_default(document: dict[str, Any]) -> None:
    del document["pods"]["strategy"]
    read = problem_from_json(json.dumps(document).encode())
    assert [each.strategy for each in read.pods] == [Strategy.EVICT] * 2


@pytest.mark.parametrize(
    ("path", "value", "named"),
    [
        ("planner", 1, "plan.planner must be a string"),
        ("moves.0.to", None, r"plan.moves\[0\].to must be a string"),
        ("moves.0.strategy", "teleport", r"plan.moves\[0\].strategy must be one of evict"),
        ("moves.0.rejected", [{"node": "n"}], r"plan.moves\[0\].rejected\[0\].reason is missing"),
        ("certificate", None, "plan.certificate must be an object"),
        ("certificate.blockingPairs", -1, "plan.certificate.blockingPairs is -1, but 0 are named"),
        ("after.nodeLoad", {"n": "full"}, "plan.after.nodeLoad.n must be a number"),
        ("version", 2, "plan.version is 2, but .* reads up to 1"),
    ],
)
def test_a_wrong_field_of_a_plan_is_named(
    pod: Make, node: Make, problem: Make, plan: Callable[[Problem], Plan], path: str, value: object, named: str
) -> None:
    document = plan_to_json(plan(problem([pod("a"), pod("b", node="n")], [node("n")])))
    with pytest.raises(ProblemError, match=named):
        plan_from_json(json.loads(_changed(document, path, value)))


def test_json_has_the_public_keys(pod: Make, node: Make, problem: Make, plan: Callable[[Problem], Plan]) -> None:
    pods = [pod("new"), pod("old", node="n"), pod("huge", 99)]
    form = json.loads(json.dumps(plan_to_json(plan(problem(pods, [node("n"), node("o")])))))
    public = ["planner", "moves", "stays", "unplaced", "certificate", "before", "after", "notes"]
    assert list(form) == [*public, "benefit", "missing", "version"]
    move = form["moves"][0]
    assert (move["pod"], move["uid"], move["from"], move["to"]) == ("default/new", "uid-new", None, "n")
    assert set(move) == {"pod", "uid", "from", "to", "reasons", "rank", "rejected", "strategy", "benefit"}
    assert form["stays"][0].keys() >= {"pod", "node", "reason"}
    assert form["unplaced"][0]["pod"] == "default/huge"
    assert form["certificate"] == {"feasible": True, "blockingPairs": 0, "violations": [], "blocking": []}
    assert form["after"]["pending"] == 1
    assert form["benefit"].keys() >= {
        "horizon",
        "without",
        "expected",
        "lostWithout",
        "lost",
        "price",
        "saved",
        "ratio",
    }
    assert form["missing"] is None


def test_a_plan_with_benefit_and_missing_capacity_is_read_as_it_was_written(
    pod: Make, node: Make, problem: Make, plan: Callable[[Problem], Plan]
) -> None:
    pods = [pod("a", 6, node="n", happy=False), pod("b", 6, node="n"), pod("c", 20, node="m", happy=False)]
    made = plan(problem(pods, [node("m"), node("n"), node("o")]))
    assert made.moves
    assert made.moves[0].benefit is not None
    assert made.missing is not None
    form = json.loads(json.dumps(plan_to_json(made)))
    assert form["missing"]["text"]
    assert form["moves"][0]["benefit"]["ratio"] > 2
    assert plan_from_json(form) == made
