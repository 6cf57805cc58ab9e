"""No running pod is moved to a cordoned node, whatever it tolerates. Pending pods follow kube-scheduler."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from matching.feasibility import cordoned, would_take
from matching.plan import Plan, PlannedMove
from matching.problem import Node, Pod, Problem, Rules, Taint, Toleration
from matching.registry import known_planners, load_planner
from matching.testing import random_problem
from matching.verify import certify
from matching.verify.reference import violations

EVERYTHING = Rules((Toleration(operator="Exists"),))
MARKED = Taint("node.kubernetes.io/unschedulable", "NoSchedule")
CORDONED = pytest.mark.parametrize(
    "change", [{"unschedulable": True}, {"taints": (MARKED,)}, {"taints": (replace(MARKED, effect="NoExecute"),)}]
)


@CORDONED
def test_a_pod_that_tolerates_everything_is_not_moved_to_a_cordoned_node(
    change: dict[str, object],
    pod: Callable[..., Pod],
    node: Callable[..., Node],
    problem: Callable[..., Problem],
    plan: Callable[[Problem], Plan],
) -> None:
    unhappy = pod("p", 4, 4, node="busy", happy=False, rules=EVERYTHING)
    others = [pod(f"q{at}", 3, 3, node="busy", fixed="DaemonSet") for at in range(2)]
    asked = problem([unhappy, *others], [node("busy"), node("closed", **change)])

    found = plan(asked)

    assert found.moves == ()
    (move,) = [PlannedMove("default/p", "uid-p", "busy", "closed", 1, ("anyway",))]
    stays = tuple(stay for stay in found.stays if stay.pod != "default/p")
    assert "default/p: closed is cordoned, no running pod may go there" in certify(asked, (move,), stays, ()).violations
    assert list(violations(asked, (move,), stays, ())) == ["default/p: may not go to closed"]


@CORDONED
def test_a_pending_pod_may_go_there_if_it_tolerates_that(
    change: dict[str, object],
    pod: Callable[..., Pod],
    node: Callable[..., Node],
    problem: Callable[..., Problem],
    plan: Callable[[Problem], Plan],
) -> None:
    asked = problem([pod("p", rules=EVERYTHING), pod("q")], [node("closed", **change)])

    found = plan(asked)

    assert [move.pod for move in found.moves] == ["default/p"]
    assert found.certificate.feasible
    assert [left.pod for left in found.unplaced] == ["default/q"]


@CORDONED
def test_no_node_that_was_cordoned_meanwhile_takes_a_moved_pod(
    change: dict[str, object], pod: Callable[..., Pod], node: Callable[..., Node], problem: Callable[..., Problem]
) -> None:
    asked = problem([pod("p", rules=EVERYTHING)], [node("open"), node("closed", **change)])

    assert would_take(asked, "uid-p", "open")
    assert not would_take(asked, "uid-p", "closed")


def test_a_soft_taint_of_that_name_does_not_cordon(node: Callable[..., Node]) -> None:
    assert not cordoned(node("n", taints=(replace(MARKED, effect="PreferNoSchedule"),)))


@pytest.mark.parametrize("name", [each for each in known_planners() if each != "function"])
@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**31))
def test_no_planner_moves_a_running_pod_to_a_cordoned_node(name: str, seed: int) -> None:
    made = random_problem(seed)
    nodes = tuple(
        replace(node, unschedulable=False, taints=(MARKED,)) if at % 2 else node for at, node in enumerate(made.nodes)
    )
    pods = tuple(replace(pod, rules=replace(pod.rules, tolerations=EVERYTHING.tolerations)) for pod in made.pods)
    asked = replace(made, pods=pods, nodes=nodes)
    closed = {node.name for node in nodes if cordoned(node)}

    found = load_planner(name, {"population": 12, "generations": 8} if name == "genetic" else {}).plan(asked)

    assert not [move for move in found.moves if move.source is not None and move.target in closed]


@pytest.mark.parametrize(
    "taint",
    [
        Taint("DeletionCandidateOfClusterAutoscaler", "PreferNoSchedule"),
        Taint("ToBeDeletedByClusterAutoscaler", "NoSchedule"),
        Taint("karpenter.sh/disrupted", "NoSchedule"),
    ],
    ids=lambda taint: taint.key,
)
def test_no_pod_is_moved_to_a_node_that_an_autoscaler_is_about_to_remove(
    taint: Taint,
    pod: Callable[..., Pod],
    node: Callable[..., Node],
    problem: Callable[..., Problem],
    plan: Callable[[Problem], Plan],
) -> None:
    unhappy = pod("p", 4, 4, node="busy", happy=False, rules=EVERYTHING)
    others = [pod(f"q{at}", 3, 3, node="busy", fixed="DaemonSet") for at in range(2)]
    waiting = pod("new", 1, 1, rules=EVERYTHING)
    asked = problem([unhappy, *others, waiting], [node("busy"), node("going", taints=(taint,))])

    found = plan(asked)

    assert [(move.pod, move.target) for move in found.moves] == [("default/new", "going")]
    move = PlannedMove("default/p", "uid-p", "busy", "going", 1, ("anyway",))
    stays = tuple(stay for stay in found.stays if stay.pod != "default/p")
    (said,) = [each for each in certify(asked, (move,), stays, ()).violations if "default/p" in each]
    assert said == "default/p: an autoscaler is about to remove going, no running pod may go there"
    assert "default/p: may not go to going" in list(violations(asked, (move,), stays, ()))
