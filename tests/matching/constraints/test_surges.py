"""While a pod surges, its old pod is still on its node: rules between pods see both, and after its turn only one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from matching.plan import Plan, PlannedMove, Stay
from matching.problem import Node, Pod, PodTerm, Problem, Requirement, Rules, Selector, Spread, Strategy
from matching.verify import certify
from matching.verify.reference import violations

WEB = {"app": "web"}
IS_WEB = Selector((Requirement("app", "In", ("web",)),))
ONE_PER_ZONE = Rules(pod_anti_affinity=(PodTerm("zone", IS_WEB),))
SPREAD = Rules(spread=(Spread("zone", IS_WEB, max_skew=1),))
SURGES = pytest.mark.parametrize("strategy", [Strategy.SCALE_SURGE, Strategy.RELEASE_SURGE])


@pytest.fixture
def crowded(
    pod: Callable[..., Pod], node: Callable[..., Node], problem: Callable[..., Problem]
) -> Callable[..., Problem]:
    """web is unhappy on `busy` in zone a; `near` is in the same zone, `far` in another."""

    def make(strategy: Strategy, rules: Rules, *, far: bool) -> Problem:
        web = pod("web", 4, 4, node="busy", happy=False, rules=rules, labels=WEB, strategy=strategy)
        others = [pod(f"q{at}", 3, 3, node="busy", fixed="DaemonSet") for at in range(2)]
        nodes = [node("busy", labels={"zone": "a"}), node("near", labels={"zone": "a"})]
        return problem([web, *others], [*nodes, node("far", labels={"zone": "b"})] if far else nodes)

    return make


@SURGES
@pytest.mark.parametrize("rules", [ONE_PER_ZONE], ids=["anti-affinity"])
def test_a_surge_goes_where_both_may_run(
    strategy: Strategy, rules: Rules, crowded: Callable[..., Problem], plan: Callable[[Problem], Plan]
) -> None:
    evicted = plan(crowded(Strategy.EVICT, rules, far=False))
    assert [(move.pod, move.target) for move in evicted.moves] == [("default/web", "near")]

    nowhere = plan(crowded(strategy, rules, far=False))
    assert nowhere.moves == ()

    elsewhere = plan(crowded(strategy, rules, far=True))
    assert [(move.target, move.strategy) for move in elsewhere.moves] == [("far", strategy)]
    assert elsewhere.certificate.feasible


@SURGES
def test_the_verifiers_refuse_a_surge_that_the_old_pod_forbids(
    strategy: Strategy, crowded: Callable[..., Problem]
) -> None:
    asked = crowded(strategy, ONE_PER_ZONE, far=False)
    move = PlannedMove("default/web", "uid-web", "busy", "near", 1, (), strategy=strategy)
    stays = tuple(Stay(pod.key, pod.uid, pod.node or "", "") for pod in asked.pods if pod.key != move.pod)
    (said,) = certify(asked, (move,), stays, ()).violations
    assert "its anti-affinity over zone, while its old pod is still there" in said
    assert list(violations(asked, (move,), stays, ())) == ["default/web: breaks a rule between pods"]
    evicted = replace(asked, pods=tuple(replace(pod, strategy=Strategy.EVICT) for pod in asked.pods))
    assert certify(evicted, (replace(move, strategy=Strategy.EVICT),), stays, ()).violations == ()


@SURGES
def test_after_its_turn_the_old_pod_is_gone(
    strategy: Strategy, pod: Callable[..., Pod], node: Callable[..., Node], problem: Callable[..., Problem]
) -> None:
    """The second web goes to the zone that the first one has left."""
    rules = Rules(pod_anti_affinity=(PodTerm("zone", IS_WEB),))
    first = pod("first", node="a1", rules=rules, labels=WEB, strategy=strategy)
    second = pod("second", node="b1", rules=rules, labels=WEB, strategy=strategy)
    nodes = [node(f"{zone}{at}", labels={"zone": zone}) for zone in "abc" for at in (1, 2)]
    asked = problem([first, second], nodes)
    moves = tuple(
        PlannedMove(f"default/{name}", f"uid-{name}", source, target, 1, (), strategy=strategy)
        for name, source, target in (("first", "a1", "c1"), ("second", "b1", "a2"))
    )
    assert certify(asked, moves, (), ()).violations == ()
    assert list(violations(asked, moves, (), ())) == []
    assert certify(asked, moves[::-1], (), ()).violations != ()
    assert list(violations(asked, moves[::-1], (), ())) != []


@SURGES
def test_spread_counts_the_old_pod(strategy: Strategy, crowded: Callable[..., Problem]) -> None:
    """With the old pod in zone a, another one there would make the skew 2."""
    asked = crowded(strategy, SPREAD, far=True)
    stays = tuple(Stay(pod.key, pod.uid, pod.node or "", "") for pod in asked.pods if pod.key != "default/web")
    near, far = (
        (PlannedMove("default/web", "uid-web", "busy", target, 1, (), strategy=strategy),) for target in ("near", "far")
    )
    assert certify(asked, far, stays, ()).violations == ()
    (said,) = certify(asked, near, stays, ()).violations
    assert "its spread over zone, while its old pod is still there" in said
    assert list(violations(asked, near, stays, ())) == ["default/web: breaks a rule between pods"]


@SURGES
def test_why_it_is_moved_in_this_way_is_a_reason_of_the_move(
    strategy: Strategy, crowded: Callable[..., Problem], plan: Callable[[Problem], Plan]
) -> None:
    asked = crowded(strategy, ONE_PER_ZONE, far=True)
    reasoned = replace(asked, pods=tuple(replace(pod, strategy_reason="scale surge: because") for pod in asked.pods))
    (move,) = plan(reasoned).moves
    assert move.reasons[-1] == "scale surge: because"
