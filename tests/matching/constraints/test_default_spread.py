"""Replicas without topology spread of their own are spread over nodes and zones; no pod moves for it."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matching.compiled import loading
from matching.constraints.default_spread import ZONE
from matching.plan import BlockingCause, Plan
from matching.planners.stable.planner import StablePlanner
from matching.problem import (
    Node,
    Options,
    Pod,
    Preferred,
    Problem,
    Requirement,
    Rules,
    Scope,
    Selector,
    Spread,
    Taint,
    Term,
)
from matching.testing import ends_of, random_problem


def _pod(name: str, workload: str = "web", cpu: float = 1.0, **more: Any) -> Pod:
    return Pod(f"shop/{name}", name, (cpu, cpu), (cpu, cpu), (cpu, cpu), workload=workload, **more)


def _node(name: str, cpu: float = 8.0, zone: str = "", **more: Any) -> Node:
    return Node(name, (cpu, cpu), labels={ZONE: zone} if zone else {}, **more)


def _plan(pods: list[Pod], nodes: list[Node], **options: Any) -> Plan:
    return StablePlanner().plan(Problem(("cpu", "memory"), tuple(pods), tuple(nodes), Options(**options)))


def _ends(pods: list[Pod], nodes: list[Node], **options: Any) -> list[str | None]:
    plan = _plan(pods, nodes, **options)
    assert plan.certificate.feasible
    assert plan.certificate.blocking == ()
    return [ends_of(plan)[pod.key] for pod in pods]


SMALL_FIRST = [_node("small", 4.0), _node("medium", 8.0), _node("large", 16.0)]


@pytest.mark.parametrize("scope", [Scope.PENDING, Scope.CLUSTER])
def test_two_replicas_do_not_share_the_tightest_fit(scope: Scope) -> None:
    pods = [_pod("web-1"), _pod("web-2"), _pod("db-0", "db"), _pod("db-1", "db")]
    ends = _ends(pods, SMALL_FIRST, scope=scope)
    assert ends == ["small", "medium", "small", "medium"]


def test_a_replica_goes_where_no_running_one_is() -> None:
    running = [_pod("web-1", node="small"), _pod("web-2", node="medium", fixed="stays")]
    assert _ends([*running, _pod("web-3")], SMALL_FIRST, scope=Scope.PENDING)[2] == "large"


def test_one_that_is_being_deleted_does_not_count() -> None:
    pods = [_pod("web-1", node="small", leaving=True), _pod("web-2", node="large"), _pod("web-3")]
    assert _ends(pods, SMALL_FIRST, scope=Scope.PENDING)[2] == "small"


def test_other_namespaces_and_pods_without_a_workload_are_no_replicas() -> None:
    other = replace(_pod("web-1"), key="bank/web-1", node="small")
    assert _ends([other, _pod("web-2")], SMALL_FIRST, scope=Scope.PENDING)[1] == "small"
    assert _ends([_pod("a", ""), _pod("b", "")], SMALL_FIRST, scope=Scope.PENDING) == ["small", "small"]


def test_zones_come_before_fit_and_nodes_before_zones() -> None:
    nodes = [_node("a1", 4.0, "a"), _node("a2", 5.0, "a"), _node("a3", 6.0, "a"), _node("b1", 16.0, "b")]
    ends = _ends([_pod(f"web-{at}") for at in range(4)], nodes, scope=Scope.PENDING)
    assert ends == ["a1", "b1", "a2", "a3"]


def test_nodes_with_an_empty_zone_share_none() -> None:
    """For the certificate, too."""
    nodes = [replace(_node(name, cpu), labels={ZONE: ""}) for name, cpu in (("a1", 4.0), ("a2", 5.0))]
    pods = [_pod("web-1", node="a1"), _pod("web-2")]
    assert _ends(pods, [*nodes, _node("b1", 16.0, "b")], scope=Scope.PENDING)[1] == "a2"


def test_replicas_end_evenly_on_equal_nodes() -> None:
    nodes = [_node(f"n{at}", 16.0, "ab"[at % 2]) for at in range(4)]
    ends = _ends([_pod(f"web-{at}") for at in range(8)], nodes, scope=Scope.PENDING)
    assert set(Counter(ends).values()) == {2}


def test_they_share_a_node_where_no_other_has_room() -> None:
    ends = _ends([_pod("web-1"), _pod("web-2")], [_node("n1"), _node("full", 8.0, max_pods=0)], scope=Scope.PENDING)
    assert ends == ["n1", "n1"]


def test_no_running_pod_moves_for_it() -> None:
    pods = [_pod("web-1", node="small"), _pod("web-2", node="small")]
    assert _plan(pods, SMALL_FIRST).moves == ()


def test_an_unhappy_replica_does_not_move_beside_another() -> None:
    """Both nodes relieve it; the one with the replica fits better."""
    nodes = [_node("hot", 4.0), _node("near", 8.0), _node("roomy", 16.0)]
    pods = [_pod("web-1", node="hot", cpu=3.9, happy=False), _pod("web-2", node="near")]
    plan = _plan(pods, nodes, scope=Scope.UNHAPPY)
    assert [(move.pod, move.target) for move in plan.moves] == [("shop/web-1", "roomy")]
    near = next(each for each in plan.moves[0].rejected if each.node == "near")
    assert "1 replica of its workload there" in near.reason


@pytest.mark.parametrize("scope", [Scope.AFFECTED, Scope.CLUSTER])
def test_nor_in_the_other_scopes(scope: Scope) -> None:
    nodes = [_node("hot", 4.0), _node("near", 8.0), _node("roomy", 16.0)]
    pods = [_pod("web-1", node="hot", cpu=3.9, happy=False), _pod("web-2", node="near")]
    assert [move.target for move in _plan(pods, nodes, scope=scope).moves] == ["roomy"]


SELECTOR = Selector((Requirement("app", "In", ("web",)),))


@pytest.mark.parametrize(
    "rules",
    [
        Rules(spread=(Spread(ZONE, SELECTOR, max_skew=9),)),
        Rules(preferred=Preferred(spread=(Spread(ZONE, SELECTOR),))),
    ],
)
def test_a_pod_with_topology_spread_of_its_own_is_left_to_it(rules: Rules) -> None:
    nodes = [replace(node, labels={ZONE: "a"}) for node in SMALL_FIRST]
    pods = [_pod(f"web-{at}", rules=rules, labels={"app": "web"}) for at in range(2)]
    assert _ends(pods, nodes, scope=Scope.PENDING) == ["small", "small"]


def test_soft_weight_0_turns_it_off() -> None:
    assert _ends([_pod("web-1"), _pod("web-2")], SMALL_FIRST, soft_weight=0.0) == ["small", "small"]


def test_its_own_soft_constraints_weigh_more_than_one_replica() -> None:
    """As kube-scheduler weights PreferNoSchedule; cluster-autoscaler marks nodes to be removed with it."""
    avoided = _node("avoided", taints=(Taint("DeletionCandidate", "PreferNoSchedule"),))
    assert _ends([_pod("web-1"), _pod("web-2")], [avoided, _node("n1")], scope=Scope.PENDING) == ["n1", "n1"]
    ssd = Rules(preferred=Preferred(nodes=((100, Term((Requirement("disk", "In", ("ssd",)),))),)))
    nodes = [_node("hdd"), Node("ssd", (8.0, 8.0), labels={"disk": "ssd"})]
    pods = [_pod(f"web-{at}", rules=ssd) for at in range(3)]
    assert _ends(pods, nodes, scope=Scope.PENDING) == ["ssd", "ssd", "hdd"]


def _with_replicas(seed: int, pods: int) -> Problem:
    """Without rules between pods, where the stable matching is the only one."""
    problem = random_problem(seed, pods, 4)
    plain = tuple(
        replace(pod, rules=replace(pod.rules, pod_affinity=(), pod_anti_affinity=(), spread=(), ports=()))
        for pod in problem.pods
    )
    nodes = tuple(
        replace(node, labels={**node.labels, **({ZONE: node.labels["zone"]} if at else {})})
        for at, node in enumerate(problem.nodes)
    )
    options = Options(scope=Scope.PENDING if seed % 2 else Scope.UNHAPPY, only_if_better=False, headroom=0.0)
    return replace(problem, pods=plain, nodes=nodes, options=options)


@given(seed=st.integers(0, 2**31), pods=st.integers(1, 10))
def test_the_matching_stays_stable(seed: int, pods: int) -> None:
    problem = _with_replicas(seed, pods)
    certificate = StablePlanner().plan(problem).certificate
    assert certificate.feasible
    assert BlockingCause.NO_STABLE_MATCHING not in {pair.cause for pair in certificate.blocking}
    assert problem.options.scope is not Scope.PENDING or not certificate.blocking


@given(seed=st.integers(0, 2**31))
def test_compiled_and_plain_agree(seed: int) -> None:
    entry = pytest.importorskip("matching.compiled.entry", exc_type=ImportError)
    problem, loaded = _with_replicas(seed, 10), list(loading._loaded)
    try:
        loading._loaded[:] = []
        plain = StablePlanner().plan(problem)
        loading._loaded[:] = [entry]
        assert StablePlanner().plan(replace(problem)) == plain
    finally:
        loading._loaded[:] = loaded
