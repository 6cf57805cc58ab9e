"""PVs, axes that can only reject, and soft constraints."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from matching.constraints.node_rules import VETOES
from matching.model.arrays import arrays_of
from matching.planners.stable.planner import StablePlanner
from matching.problem import (
    Node,
    Options,
    Pod,
    PodTerm,
    Preferred,
    Problem,
    ProblemError,
    Requirement,
    Rules,
    Scope,
    Selector,
    Spread,
    Taint,
    Term,
    Toleration,
)
from matching.verify.node_rules import may_come
from matching.verify.preferences import SoftConstraints

ZONE = "topology.kubernetes.io/zone"
OLD_ZONE = "failure-domain.beta.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"


def on(*hosts: str) -> tuple[Term, ...]:
    return (Term((Requirement("host", "In", hosts),)),)


@pytest.mark.parametrize(
    ("rules", "labels", "expected"),
    [
        (Rules(volumes=(on("n1"),)), {"host": "n1"}, True),
        (Rules(volumes=(on("n1"),)), {"host": "n2"}, False),
        (Rules(volumes=(on("n1", "n2"), on("n2"))), {"host": "n1"}, False),
        (Rules(volumes=((),)), {"host": "n1"}, False),
        (Rules(volume_zones=((ZONE, ("a",)),)), {ZONE: "a"}, True),
        (Rules(volume_zones=((ZONE, ("a", "b")),)), {ZONE: "b"}, True),
        (Rules(volume_zones=((ZONE, ("a",)),)), {ZONE: "b"}, False),
        (Rules(volume_zones=((ZONE, ("a",)),)), {}, True),
        (Rules(volume_zones=((ZONE, ("a",)),)), {REGION: "eu"}, False),
        (Rules(volume_zones=((OLD_ZONE, ("a",)),)), {ZONE: "a"}, True),
        (Rules(volume_zones=((OLD_ZONE, ("a",)),)), {ZONE: "b"}, False),
        (Rules(volume_zones=((OLD_ZONE, ("a",)),)), {OLD_ZONE: "a", ZONE: "b"}, True),
        (Rules(volume_zones=((ZONE, ("a",)),)), {OLD_ZONE: "a"}, False),
    ],
)
def test_volumes(rules: Rules, labels: dict[str, str], expected: bool) -> None:
    node = Node("n", (1.0,), labels=labels)
    assert any(veto(rules, node) for veto in VETOES) is not expected
    assert may_come(rules, node) is expected


def _gpu_problem(gpus: float, asked: float, **more: Any) -> Problem:
    pods = (
        Pod("shop/new", "new", (1, 1, 9), (1, 1, asked), (1, 1, 9)),
        Pod("shop/old", "old", (2, 2, 0), (2, 2, 1), (2, 2, 5), node="n2", fixed="stays"),
    )
    nodes = (Node("n1", (4, 4, 0)), Node("n2", (8, 8, gpus), background=(1, 1, 3)))
    return Problem(("cpu", "memory", "gpu"), pods, nodes, hard_only=("gpu",), **more)


def test_an_axis_that_can_only_reject_does() -> None:
    assert [move.target for move in StablePlanner().plan(_gpu_problem(4, 2)).moves] == ["n2"]
    full = StablePlanner().plan(_gpu_problem(1, 2))
    assert not full.moves
    assert "lacks" in full.unplaced[0].reason


@given(gpus=st.sampled_from([1, 3, 8, 1000]))
def test_and_it_never_attracts_crowds_or_counts_as_load(gpus: int) -> None:
    """Whatever there is of it, the plan is the one of the problem without that axis."""
    problem = _gpu_problem(gpus, 0, options=Options(scope=Scope.PENDING))
    bare = replace(
        problem,
        axes=("cpu", "memory"),
        hard_only=(),
        pods=tuple(replace(p, usage=p.usage[:2], request=p.request[:2], peak=p.peak[:2]) for p in problem.pods),
        nodes=tuple(replace(n, allocatable=n.allocatable[:2], background=n.background[:2]) for n in problem.nodes),
    )
    with_axis, without = StablePlanner().plan(problem), StablePlanner().plan(bare)
    assert [move.target for move in with_axis.moves] == [move.target for move in without.moves]
    assert with_axis.after == without.after
    assert with_axis.certificate.blocking == without.certificate.blocking


def test_axes_that_can_only_reject_must_be_axes_and_not_all_of_them() -> None:
    with pytest.raises(ProblemError, match="hard_only names 'disk'"):
        arrays_of(Problem(("cpu",), (), (), hard_only=("disk",)))
    with pytest.raises(ProblemError, match="at least one has to be measured"):
        arrays_of(Problem(("cpu",), (), (), hard_only=("cpu",)))


WEB = Selector((Requirement("app", "In", ("web",)),))
PREFER_NO_SCHEDULE = Taint("shy", "PreferNoSchedule")


def soft(**more: Any) -> Rules:
    return Rules(preferred=Preferred(**more))


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        (Rules(), [0, 0, 1]),
        (Rules((Toleration("shy", "Exists"),)), [0, 0, 0]),
        (
            soft(nodes=((3, Term((Requirement("zone", "In", ("a",)),))), (1, Term((Requirement("x", "Exists"),))))),
            [0.1, 0.4, 1],
        ),
        (soft(with_pods=((1, PodTerm("zone", WEB)),)), [0, 0.4, 1]),
        (soft(apart_from=((1, PodTerm("zone", WEB)),)), [0.4, 0, 0.6]),
        (soft(spread=(Spread("zone", WEB),)), [0.4, 0, 1]),
    ],
)
def test_soft_constraints_are_priced_between_0_and_1(rules: Rules, expected: list[float]) -> None:
    nodes = (
        Node("n1", (4.0,), labels={"zone": "a"}),
        Node("n2", (4.0,), labels={"zone": "b"}),
        Node("n3", (4.0,), taints=(PREFER_NO_SCHEDULE,)),
    )
    pods = (
        Pod("shop/asking", "1", (1.0,), (1.0,), (1.0,), rules=rules, labels={"app": "web"}),
        Pod("shop/web", "2", (1.0,), (1.0,), (1.0,), node="n1", labels={"app": "web"}),
    )
    problem = Problem(("cpu",), pods, nodes)
    found = arrays_of(problem).soft
    assert found is not None
    assert found.unmet(0).tolist() == pytest.approx(expected)
    assert SoftConstraints(problem, problem.pods, nodes).broken(0).tolist() == pytest.approx(expected)


def test_a_soft_constraint_decides_between_equals_and_weight_0_ignores_it() -> None:
    rules = soft(nodes=((1, Term((Requirement("zone", "In", ("b",)),))),))
    pods = (Pod("shop/new", "1", (1.0,), (1.0,), (1.0,), rules=rules),)
    nodes = (Node("n1", (4.0,), labels={"zone": "a"}), Node("n2", (4.0,), labels={"zone": "b"}))
    for weight, expected in ((0.05, "n2"), (0.0, "n1")):
        plan = StablePlanner().plan(Problem(("cpu",), pods, nodes, Options(soft_weight=weight)))
        assert plan.moves[0].target == expected
        assert not plan.certificate.blocking


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 10**9))
def test_planner_and_verifier_read_soft_constraints_alike(seed: int, inter_pod_problem: Callable[..., Problem]) -> None:
    pick, problem = Random(seed), inter_pod_problem(seed)
    with_soft = {
        rules: replace(
            rules,
            pod_affinity=(),
            pod_anti_affinity=(),
            spread=(),
            ports=(),
            preferred=Preferred(
                with_pods=tuple((pick.randint(1, 9), term) for term in rules.pod_affinity),
                apart_from=tuple((pick.randint(1, 9), term) for term in rules.pod_anti_affinity),
                spread=rules.spread,
            ),
        )
        for rules in {pod.rules for pod in problem.pods}
    }
    problem = replace(problem, pods=tuple(replace(pod, rules=with_soft[pod.rules]) for pod in problem.pods))
    arrays = arrays_of(problem)
    soft = SoftConstraints(problem, arrays.pods, arrays.nodes)
    for number in range(len(arrays.pods)):
        expected = soft.broken(number)
        assert ((expected >= 0) & (expected <= 1)).all()
        found = expected * 0 if arrays.soft is None else arrays.soft.unmet(number)
        assert found.tolist() == pytest.approx(expected.tolist())
    assert not StablePlanner().plan(problem).certificate.blocking
