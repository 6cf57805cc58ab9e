"""kube-scheduler's inter-pod constraints in small tables: the planner, the verifier and a plain reading agree."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from matching.model.arrays import arrays_of
from matching.model.ledger import Ledger
from matching.plan import PlannedMove
from matching.problem import (
    HostPort,
    Node,
    Pod,
    PodTerm,
    Problem,
    ProblemError,
    Requirement,
    Rules,
    Selector,
    Spread,
    Taint,
    Term,
)
from matching.verify import certify

NO_RULES = Rules()
ZONE, HOST = "zone", "host"
WEB, DB = ({"app": name} for name in ("web", "db"))


def app(*names: str) -> Selector:
    return Selector((Requirement("app", "In", names),))


def pod(name: str, node: str | None = None, rules: Rules = NO_RULES, **more: Any) -> Pod:
    key = name if "/" in name else f"shop/{name}"
    return Pod(key, f"uid {key}", (1.0,), (1.0,), (1.0,), node=node, rules=rules, **more)


def node(name: str, zone: str | None = None, **more: Any) -> Node:
    labels = {HOST: name} | ({ZONE: zone} if zone else {})
    return Node(name, (10.0,), labels={**labels, **more.pop("labels", {})}, **more)


NODES = (node("a1", "a"), node("a2", "a"), node("b1", "b"), node("plain"))


def near(*terms: PodTerm) -> Rules:
    return Rules(pod_affinity=terms)


def apart(*terms: PodTerm) -> Rules:
    return Rules(pod_anti_affinity=terms)


def even(*spreads: Spread) -> Rules:
    return Rules(spread=spreads)


@pytest.fixture
def allowed(slow_scheduler: Callable[..., Any]) -> Callable[..., set[str]]:
    def ask(
        asking: Pod,
        others: list[Pod],
        nodes: tuple[Node, ...] = NODES,
        namespaces: dict[str, dict[str, str]] | None = None,
    ) -> set[str]:
        """The nodes that all three readings allow it besides the one it is on."""
        problem = Problem(("cpu",), (asking, *others), nodes, namespaces=namespaces or {})
        arrays = arrays_of(problem)
        number = [each.key for each in arrays.pods].index(asking.key)
        answers = Ledger(arrays, arrays.current).inter_pod.allows(number)
        found = {each.name for each, fine in zip(arrays.nodes, answers, strict=True) if fine} - {asking.node}
        plain = slow_scheduler(problem)
        assert found == {each.name for each in nodes if plain.allows(asking.key, each.name)} - {asking.node}
        assert found == {each.name for each in nodes if not _objected(problem, asking, each.name)} - {asking.node}
        return found

    return ask


def _objected(problem: Problem, asking: Pod, target: str) -> bool:
    move = PlannedMove(asking.key, asking.uid, asking.node, target, 1, ())
    return any("at its turn" in each for each in certify(problem, [move], (), ()).violations)


Allowed = Callable[..., set[str]]
ALL = {"a1", "a2", "b1", "plain"}


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        (near(PodTerm(ZONE, app("web"))), {"a1", "a2"}),
        (near(PodTerm(HOST, app("web"))), {"a1"}),
        (near(PodTerm(ZONE, app("web")), PodTerm(HOST, app("web"))), {"a1"}),
        (near(PodTerm(ZONE, app("web")), PodTerm(ZONE, app("db"))), set()),
        (near(PodTerm(ZONE, app("none"))), set()),
        (near(PodTerm(ZONE, None)), set()),
        (near(PodTerm(ZONE, Selector())), {"a1", "a2", "b1"}),
        (near(PodTerm("missing", app("web"))), set()),
        (apart(PodTerm(ZONE, app("web"))), {"b1", "plain"}),
        (apart(PodTerm(HOST, app("web"))), {"a2", "b1", "plain"}),
        (apart(PodTerm(ZONE, app("web")), PodTerm(ZONE, app("db"))), {"plain"}),
        (apart(PodTerm(ZONE, Selector((Requirement("app", "NotIn", ("web",)),)))), {"a1", "a2", "plain"}),
        (apart(PodTerm("missing", app("web"))), ALL),
    ],
)
def test_own_affinity_and_anti_affinity(rules: Rules, expected: set[str], allowed: Allowed) -> None:
    others = [pod("web", "a1", labels=WEB), pod("db", "b1", labels=DB)]
    assert allowed(pod("new", rules=rules), others) == expected


@pytest.mark.parametrize(
    ("term", "expected"),
    [
        (PodTerm(ZONE, app("web")), set()),
        (PodTerm(ZONE, app("web"), ("bank",)), {"b1"}),
        (PodTerm(ZONE, app("web"), ("shop", "bank")), {"b1"}),
        (PodTerm(ZONE, app("web"), (), Selector()), {"b1"}),
        (PodTerm(ZONE, app("web"), (), Selector((Requirement("team", "In", ("money",)),))), {"b1"}),
        (PodTerm(ZONE, app("web"), (), Selector((Requirement("team", "In", ("toys",)),))), set()),
        (PodTerm(ZONE, app("web"), ("bank",), Selector((Requirement("team", "In", ("toys",)),))), {"b1"}),
    ],
)
def test_namespaces_of_a_term(term: PodTerm, expected: set[str], allowed: Allowed) -> None:
    others = [pod("bank/web", "b1", labels=WEB)]
    namespaces = {"shop": {"team": "toys"}, "bank": {"team": "money"}}
    assert allowed(pod("new", rules=near(term)), others, NODES, namespaces) == expected


def test_anti_affinity_of_a_pod_already_there(allowed: Allowed) -> None:
    guard = pod("guard", "a1", apart(PodTerm(ZONE, app("web"))))
    assert allowed(pod("new", labels=WEB), [guard]) == {"b1", "plain"}
    assert allowed(pod("new", labels=DB), [guard]) == ALL
    assert allowed(pod("bank/new", labels=WEB), [guard]) == ALL


def test_the_first_pod_of_a_group_that_likes_itself(allowed: Allowed) -> None:
    rules = near(PodTerm(ZONE, app("web")))
    assert allowed(pod("new", rules=rules, labels=WEB), []) == {"a1", "a2", "b1"}
    assert allowed(pod("new", rules=rules, labels=WEB), [pod("old", "b1", rules, labels=WEB)]) == {"b1"}
    assert allowed(pod("new", rules=rules, labels=WEB), [pod("old", "plain", labels=WEB)]) == {"a1", "a2", "b1"}
    assert allowed(pod("new", rules=rules, labels=DB), []) == set()


def test_the_last_match_is_not_taken_away_from_who_requires_it(allowed: Allowed) -> None:
    cache = pod("cache", "a2", near(PodTerm(ZONE, app("web"))))
    assert allowed(pod("web", "a1", labels=WEB), [cache]) == {"a2"}
    assert allowed(pod("web", "a1", labels=WEB), [cache, pod("web2", "a2", labels=WEB)]) == {"a2", "b1", "plain"}
    already_lost = pod("cache", "b1", near(PodTerm(ZONE, app("web"))))
    assert allowed(pod("web", "a1", labels=WEB), [already_lost]) == {"a2", "b1", "plain"}


def test_of_two_that_like_each_other_none_leaves_the_place(allowed: Allowed) -> None:
    rules = near(PodTerm(ZONE, app("web")))
    assert allowed(pod("one", "a1", rules, labels=WEB), [pod("other", "a1", rules, labels=WEB)]) == {"a2"}
    assert allowed(pod("stranger", "a1", labels=WEB), [pod("other", "a1", rules, labels=WEB)]) == {"a2"}


def webs(**per_node: int) -> list[Pod]:
    return [pod(f"{on}-{number}", on, labels=WEB) for on, many in per_node.items() for number in range(many)]


@pytest.mark.parametrize(
    ("spread", "counts", "expected"),
    [
        (Spread(ZONE, app("web")), {}, {"a1", "a2", "b1"}),
        (Spread(ZONE, app("web")), {"a1": 1}, {"b1"}),
        (Spread(ZONE, app("web")), {"a1": 1, "b1": 1}, {"a1", "a2", "b1"}),
        (Spread(ZONE, app("web"), max_skew=2), {"a1": 1}, {"a1", "a2", "b1"}),
        (Spread(ZONE, app("web"), max_skew=2), {"a1": 1, "a2": 1}, {"b1"}),
        (Spread(HOST, app("web")), {"a1": 1}, {"a2", "b1", "plain"}),
        (Spread(ZONE, app("web"), min_domains=2), {"a1": 1, "b1": 1}, {"a1", "a2", "b1"}),
        (Spread(ZONE, app("web"), min_domains=3), {"a1": 1, "b1": 1}, set()),
        (Spread(ZONE, app("web"), min_domains=3), {"a1": 1}, {"b1"}),
        (Spread(ZONE, app("db")), {"a1": 3}, {"a1", "a2", "b1"}),
        (Spread(ZONE, Selector()), {"a1": 3}, {"a1", "a2", "b1"}),
        (Spread(ZONE, None), {"a1": 3}, {"a1", "a2", "b1"}),
        (Spread("missing", app("web")), {}, set()),
    ],
)
def test_spread(spread: Spread, counts: dict[str, int], expected: set[str], allowed: Allowed) -> None:
    assert allowed(pod("new", rules=even(spread), labels=WEB), webs(**counts)) == expected


def test_spread_counts_only_its_namespace_and_nobody_who_is_leaving(allowed: Allowed) -> None:
    new = pod("new", rules=even(Spread(ZONE, app("web"))), labels=WEB)
    assert allowed(new, [pod("bank/web", "a1", labels=WEB)]) == {"a1", "a2", "b1"}
    assert allowed(new, [pod("old", "a1", labels=WEB, leaving=True)]) == {"a1", "a2", "b1"}


def test_spread_looks_only_at_nodes_that_have_all_its_labels(allowed: Allowed) -> None:
    rules = even(Spread(ZONE, app("web")), Spread(HOST, app("web"), max_skew=5))
    assert allowed(pod("new", rules=rules, labels=WEB), webs(plain=4)) == {"a1", "a2", "b1"}


@pytest.mark.parametrize(("honor", "expected"), [(True, {"a1", "b1", "c1"}), (False, {"c1"})])
def test_spread_and_nodes_that_the_node_selector_leaves_out(honor: bool, expected: set[str], allowed: Allowed) -> None:
    """Zone c has no node that the pod may use: honoured, it is no domain, and nothing is compared with its 0."""
    ssd = {"disk": "ssd"}
    nodes = (node("a1", "a", labels=ssd), node("b1", "b", labels=ssd), node("c1", "c"))
    rules = Rules(node_selector=(("disk", "ssd"),), spread=(Spread(ZONE, app("web"), honor_affinity=honor),))
    assert allowed(pod("new", rules=rules, labels=WEB), webs(a1=1, b1=1), nodes) == expected


def test_required_node_affinity_is_honoured_like_the_selector() -> None:
    nodes = (node("a1", "a", labels={"disk": "ssd"}), node("b1", "b"))
    affine = Rules(node_affinity=(Term((Requirement("disk", "Exists"),)),), spread=(Spread(ZONE, app("web")),))
    arrays = arrays_of(Problem(("cpu",), (pod("new", rules=affine, labels=WEB), *webs(a1=1)), nodes))
    number = [each.key for each in arrays.pods].index("shop/new")
    assert Ledger(arrays, arrays.current).inter_pod.allows(number)[0]


@pytest.mark.parametrize(("honor", "fits"), [(True, True), (False, False)])
def test_spread_and_tainted_nodes(honor: bool, fits: bool, allowed: Allowed) -> None:
    nodes = (node("a1", "a"), node("b1", "b", taints=(Taint("k", "NoSchedule"),)))
    rules = even(Spread(ZONE, app("web"), honor_taints=honor))
    assert ("a1" in allowed(pod("new", rules=rules, labels=WEB), webs(a1=1), nodes)) is fits


def test_an_existing_skew_is_legal_but_not_made_worse(allowed: Allowed) -> None:
    nodes = tuple(node(f"{zone}1", zone) for zone in "abc")
    spread = even(Spread(ZONE, app("web"), max_skew=2))
    owners = [pod(f"old{n}", "a1", spread, labels=WEB) for n in range(5)]
    owners += [pod("other", "b1", spread, labels=WEB)]
    assert allowed(pod("mover", "c1", spread, labels=WEB), owners, nodes) == set()
    assert allowed(pod("mover", "a1", spread, labels=WEB), owners[:-1], nodes) == {"b1", "c1"}


def test_a_pod_without_the_constraint_does_not_make_it_worse_by_moving_but_may_be_placed(allowed: Allowed) -> None:
    nodes = tuple(node(f"{zone}1", zone) for zone in "ab")
    owners = [pod(f"w{zone}", f"{zone}1", even(Spread(ZONE, app("web"))), labels=WEB) for zone in "ab"]
    assert allowed(pod("mover", "b1", labels=WEB), [*owners, pod("more", "a1", labels=WEB)], nodes) == set()
    assert allowed(pod("new", labels=WEB), [*owners, pod("more", "a1", labels=WEB)], nodes) == {"a1", "b1"}


@pytest.mark.parametrize(
    ("wanted", "taken", "clash"),
    [
        (HostPort(80), HostPort(80), True),
        (HostPort(80), HostPort(81), False),
        (HostPort(80), HostPort(80, "UDP"), False),
        (HostPort(80, ip="10.0.0.1"), HostPort(80), True),
        (HostPort(80), HostPort(80, ip="10.0.0.1"), True),
        (HostPort(80, ip="10.0.0.1"), HostPort(80, ip="10.0.0.1"), True),
        (HostPort(80, ip="10.0.0.1"), HostPort(80, ip="10.0.0.2"), False),
    ],
)
def test_host_ports(wanted: HostPort, taken: HostPort, clash: bool, allowed: Allowed) -> None:
    new = pod("new", rules=Rules(ports=(wanted,)))
    assert ("a1" not in allowed(new, [pod("old", "a1", Rules(ports=(taken,)))])) is clash


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        (near(PodTerm("", app("web"))), "pod affinity without a topology key"),
        (apart(PodTerm(ZONE, Selector((Requirement("app", "Gt", ("1",)),)))), "unknown operator 'Gt'"),
        (near(PodTerm(ZONE, Selector((Requirement("app", "In"),)))), "In takes at least one value"),
        (apart(PodTerm(ZONE, None, (), Selector((Requirement("a", "Exists", ("x",)),)))), "Exists takes no values"),
        (even(Spread(ZONE, app("web"), max_skew=0)), "maxSkew is 0"),
        (even(Spread(ZONE, app("web"), min_domains=0)), "minDomains is 0"),
        (even(Spread("", app("web"))), "topology spread without a topology key"),
        (Rules(ports=(HostPort(0),)), "host port 0"),
    ],
)
def test_rules_that_nobody_can_mean_name_the_pod(rules: Rules, message: str) -> None:
    with pytest.raises(ProblemError, match=f"pod shop/wrong: .*{message}"):
        arrays_of(Problem(("cpu",), (pod("wrong", rules=rules),), NODES))


def test_words() -> None:
    others = [pod("web-1", "a1", labels=WEB), pod("guard", "b1", apart(PodTerm(HOST, app("new"))))]
    new = pod("new", rules=apart(PodTerm(ZONE, app("web"))), labels={"app": "new"})
    arrays = arrays_of(Problem(("cpu",), (new, *others), NODES))
    inter_pod = Ledger(arrays, arrays.current).inter_pod
    number = [each.key for each in arrays.pods].index("shop/new")
    assert inter_pod.why_not(number, 0) == "anti-affinity with shop/web-1 on zone a"
    assert inter_pod.why_not(number, 2) == "anti-affinity of shop/guard on host b1"
    assert inter_pod.why_not(number, 3) == ""


def test_pods_with_rules_and_selected_pods_are_known() -> None:
    pods = (
        pod("guard", "a1", apart(PodTerm(ZONE, app("web")))),
        pod("web", "b1", labels=WEB),
        pod("x", "b1", labels=DB),
    )
    found = arrays_of(Problem(("cpu",), pods, NODES)).inter_pod
    assert found is not None
    assert found.has_rules.tolist() == [True, False, False]
    assert found.selected.tolist() == [False, True, False]
    assert arrays_of(Problem(("cpu",), pods[1:], NODES)).inter_pod is None
