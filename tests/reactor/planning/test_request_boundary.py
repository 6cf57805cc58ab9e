"""Whether requests fit, at the boundary: one byte or one milli-core more or less, beside nodes of very different sizes.

The expectation is counted here in integers, as kube-scheduler does: each pod's sum is rounded up on its own.
"""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from matching.plan import PlannedMove, Planner, Stay
from matching.problem import Problem
from matching.registry import load_planner
from matching.verify import feasibility, reference
from reactor.cluster.decoding.decoder import Decoder
from reactor.cluster.kinds import Kind
from reactor.cluster.records import Pod
from reactor.planning.problem_builder import fits_now
from reactor.planning.problems import placement_problem
from reactor.state.snapshot import Snapshot
from tests.support.cluster import make_node, make_settings, make_snapshot

TIB = 2**40
PLANNERS = tuple(load_planner(name) for name in ("stable", "balance", "greedy"))

micro_cores = st.integers(0, 2_000_000)
milli_bytes = st.one_of(st.integers(0, 10**13), st.integers(0, 5000))
residents = st.lists(st.lists(st.tuples(micro_cores, milli_bytes), min_size=1, max_size=3), max_size=8)
one_off = st.integers(-1, 1)


def decoded(name: str, containers: list[tuple[str, str]], node: str | None) -> Pod:
    """From JSON, so that decoding is part of what is tested."""
    body: dict[str, Any] = {
        "metadata": {"name": name, "namespace": "shop", "uid": name},
        "spec": {
            "schedulerName": "rematch",
            "nodeSelector": {"kubernetes.io/hostname": "target"},
            "nodeName": node,
            "containers": [
                {"name": f"c{at}", "resources": {"requests": {"cpu": cpu, "memory": memory}}}
                for at, (cpu, memory) in enumerate(containers)
            ],
        },
        "status": {"phase": "Running" if node else "Pending"},
    }
    pod = Decoder().decode(Kind.PODS, msgspec.json.encode(body))
    assert isinstance(pod, Pod)
    return pod


def rounded_up(amount: int) -> int:
    return -(-amount // 1000)


def cluster(running: list[Pod], pending: Pod, cores: float, memory: float) -> Snapshot:
    nodes = [make_node("target", cores, memory), make_node("huge", 1_000.0, 6.0 * TIB + 1), make_node("tiny", 0.1, 1.0)]
    return make_snapshot([*running, pending], nodes)


def answers(snapshot: Snapshot) -> dict[str, bool]:
    """Who says that the target takes the pending pod `new`."""
    problem = placement_problem(snapshot, ["new"], (), make_settings())
    move = PlannedMove("shop/new", "new", None, "target", 1, ())
    stays = [Stay(pod.key, pod.uid, pod.node or "", "") for pod in problem.pods if pod.uid != "new"]
    found = {
        "fits_now": fits_now(snapshot.cluster.pods["new"], "target", snapshot, ()),
        "verifier": not list(feasibility.violations(problem, [move], stays, [])),
        "reference": not list(reference.violations(problem, [move], stays, [])),
    }
    return found | {planner.name: places(planner, problem) for planner in PLANNERS}


def places(planner: Planner, problem: Problem) -> bool:
    plan = planner.plan(problem)
    assert plan.certificate.feasible
    return [move.target for move in plan.moves] == ["target"]


@settings(max_examples=150, deadline=None)
@given(residents, st.integers(1, 64_000), st.integers(1, 7 * TIB), st.booleans(), one_off, one_off)
def test_planner_executor_verifier_and_reference_agree_at_the_boundary(
    there: list[list[tuple[int, int]]], milli_cores: int, memory: int, full: bool, more_cpu: int, more_memory: int
) -> None:
    running = [
        decoded(f"pod-{at}", [(f"{cpu}u", f"{bytes_}m") for cpu, bytes_ in containers], "target")
        for at, containers in enumerate(there)
    ]
    taken_cpu = sum(rounded_up(sum(cpu for cpu, _ in containers)) for containers in there)
    taken_memory = sum(rounded_up(sum(amount for _, amount in containers)) for containers in there)
    if full:
        milli_cores, memory = max(1, taken_cpu), max(1, taken_memory)
    free = (milli_cores - taken_cpu, memory - taken_memory)
    asked = (max(0, free[0] + more_cpu), max(0, free[1] + more_memory))
    pending = decoded("new", [(f"{asked[0]}m", f"{asked[1]}")], None)
    expected = all(amount == 0 or amount <= left for amount, left in zip(asked, free, strict=True))

    found = answers(cluster(running, pending, milli_cores / 1000, float(memory)))

    assert found == dict.fromkeys(found, expected)


@pytest.mark.parametrize(("memory", "expected"), [(2**30 - 1, True), (2**30, True), (2**30 + 1, False)])
def test_one_byte_counts_beside_a_node_of_six_tebibytes(memory: int, expected: bool) -> None:
    pending = decoded("new", [("1m", str(memory))], None)
    assert set(answers(cluster([], pending, 4.0, 2.0**30)).values()) == {expected}


@pytest.mark.parametrize(("last", "expected"), [("100m", True), ("100001u", False)])
def test_tenths_of_a_core_add_up_exactly(last: str, expected: bool) -> None:
    """0.1 + 0.2 is more than 0.3 for floats."""
    running = [decoded("a", [("100m", "1")], "target"), decoded("b", [("100m", "1"), ("100m", "0")], "target")]
    assert set(answers(cluster(running, decoded("new", [(last, "1")], None), 0.4, 100.0)).values()) == {expected}


@pytest.mark.parametrize(
    ("cpu", "memory", "expected"), [("0", "0", True), ("0", "1", True), ("1m", "0", False), ("1m", "1", False)]
)
def test_a_pod_is_not_refused_for_what_it_does_not_request(cpu: str, memory: str, expected: bool) -> None:
    """More CPU is requested on the node than it has: another pod may come if it requests none."""
    running = [decoded("a", [("3", "1Gi")], "target")]
    assert set(answers(cluster(running, decoded("new", [(cpu, memory)], None), 2.0, 2.0**31)).values()) == {expected}


@pytest.mark.parametrize("absurd", ["8Ei", "9999999999E", "1e999", "1Pi"])
def test_an_absurd_request_fits_nowhere_and_concerns_only_its_pod(absurd: str) -> None:
    running = [decoded("a", [("1", absurd)], "huge"), decoded("b", [("1", "1Gi")], "target")]
    assert set(answers(cluster(running, decoded("new", [("1", absurd)], None), 4.0, 2.0**31)).values()) == {False}
    assert set(answers(cluster(running, decoded("new", [("1", "1Gi")], None), 4.0, 2.0**31)).values()) == {True}
